"""``gpuperf comment`` and the action's shell steps, against an API that is none of GitHub's or GitLab's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pytest_gpuperf.cli import comment_command
from pytest_gpuperf.cli.comment_command import CommentError
from pytest_gpuperf.report.markdown import MARKER

ACTION = Path(__file__).parents[3] / "action.yml"


class FakeService:
    """Keeps comments as GitHub and GitLab do, in pages of 100."""

    def __init__(self) -> None:
        begins = "<!-- pytest-gpuperf report: kernels -->\nof a person"
        self.comments: list[dict[str, Any]] = [
            {"id": number, "body": begins, "author": {"id": 1}} for number in range(130)
        ]
        self.asked: list[tuple[str, str]] = []
        self.refuses = 0
        service = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                service.asked.append((self.command, self.path))
                token = self.headers.get("Authorization") == "Bearer secret" or self.headers.get("PRIVATE-TOKEN")
                status = service.refuses or (200 if token else 401)
                content = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")
                found: Any = {}
                if status == 200 and self.path == "/graphql":
                    found = service.own_on_github(**content["variables"])
                elif status == 200 and self.path == "/user":
                    found = {"id": 2}
                elif status == 200 and self.command == "GET":
                    page = int(self.path.rpartition("page=")[2])
                    found = service.comments[100 * (page - 1) : 100 * page]
                elif status == 200 and self.command == "POST":
                    service.comments.append({"id": len(service.comments), "author": {"id": 2}, **content})
                elif status == 200:
                    service.comments[int(self.path.rpartition("/")[2])].update(content)
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{service.url}/elsewhere")
                self.end_headers()
                self.wfile.write(json.dumps(found).encode())

            do_GET = do_POST = do_PATCH = do_PUT = answer  # noqa: N815

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def own_on_github(self, owner: str, name: str, number: int, after: str | None) -> dict[str, Any]:
        assert (owner, name, number) == ("a", "b", 7)
        first = int(after or 0)
        nodes = [
            {"databaseId": one["id"], "body": one["body"], "viewerDidAuthor": one["author"]["id"] == 2}
            for one in self.comments[first : first + 100]
        ]
        more = {"endCursor": str(first + 100), "hasNextPage": first + 100 < len(self.comments)}
        return {"data": {"repository": {"pullRequest": {"comments": {"nodes": nodes, "pageInfo": more}}}}}


@pytest.fixture
def service():
    fake = FakeService()
    yield fake
    fake.server.shutdown()
    fake.server.server_close()


@pytest.fixture
def github(service, tmp_path):
    (tmp_path / "event.json").write_text('{"pull_request": {"number": 7}}')
    return {
        "GITHUB_EVENT_PATH": str(tmp_path / "event.json"), "GITHUB_TOKEN": "secret", "GITHUB_API_URL": service.url,
        "GITHUB_GRAPHQL_URL": f"{service.url}/graphql", "GITHUB_REPOSITORY": "a/b",
    }  # fmt: skip


@pytest.fixture
def gitlab(service):
    return {
        "CI_MERGE_REQUEST_IID": "7", "CI_PROJECT_ID": "a/b", "CI_API_V4_URL": service.url,
        "GPUPERF_GITLAB_TOKEN": "secret",
    }  # fmt: skip


def comment(report: Path, environment: dict[str, str], name: str = "kernels") -> str:
    said: list[str] = []
    assert comment_command.run(report, name, write=said.append, environment=environment) == 0
    return "".join(said)


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_one_comment_is_made_and_then_updated(service, tmp_path, request, kind):
    environment = request.getfixturevalue(kind)
    report = tmp_path / "report.md"
    report.write_text(f"{MARKER}\n## gpuperf: 1 SLOWER\n")
    assert comment(report, environment) == "comment made\n"
    report.write_text(f"{MARKER}\n## gpuperf: 1 SAME\n")
    assert comment(report, environment) == "comment updated\n"
    assert comment(report, environment, "others") == "comment made\n"
    mine = [one["body"] for one in service.comments[130:]]
    assert mine == [
        "<!-- pytest-gpuperf report: kernels -->\n## gpuperf: 1 SAME\n",
        "<!-- pytest-gpuperf report: others -->\n## gpuperf: 1 SAME\n",
    ]
    assert all(one["body"].endswith("of a person") for one in service.comments[:130])


def test_a_job_of_no_request_makes_none(service, tmp_path, github):
    (tmp_path / "event.json").write_text('{"ref": "main"}')
    (tmp_path / "report.md").write_text("text")
    assert "for no pull request" in comment(tmp_path / "report.md", github)
    assert "for no pull request" in comment(tmp_path / "report.md", {})
    assert service.asked == []


@pytest.mark.parametrize("content", ["[]", "7", '{"pull_request": null}', '{"pull_request": 3}'])
def test_an_event_of_another_shape_is_of_no_request(service, tmp_path, github, content):
    (tmp_path / "event.json").write_text(content)
    (tmp_path / "report.md").write_text("text")
    assert "for no pull request" in comment(tmp_path / "report.md", github)
    assert service.asked == []


@pytest.mark.parametrize("kind", ["github", "gitlab"])
def test_a_token_that_was_pasted_with_a_line_break_is_used_and_never_told(service, tmp_path, request, kind):
    environment = request.getfixturevalue(kind)
    token = next(name for name in environment if name.endswith("_TOKEN"))
    (tmp_path / "report.md").write_text("text")
    assert comment(tmp_path / "report.md", {**environment, token: "secret\n"}) == "comment made\n"
    with pytest.raises(CommentError, match=f"{token} has") as failed:
        comment(tmp_path / "report.md", {**environment, token: "sec\nret"})
    assert "ret" not in str(failed.value)


@pytest.mark.parametrize(
    ("missing", "given"), [("CI_PROJECT_ID", None), ("CI_API_V4_URL", None), ("CI_API_V4_URL", "no url")]
)
def test_what_gitlab_does_not_say_is_named(tmp_path, gitlab, missing, given):
    (tmp_path / "report.md").write_text("text")
    environment = {name: value for name, value in gitlab.items() if name != missing}
    with pytest.raises(CommentError, match=missing if given is None else "no url"):
        comment(tmp_path / "report.md", environment if given is None else {**environment, missing: given})


def test_a_report_that_is_no_text_is_named(tmp_path, github):
    (tmp_path / "report.md").write_bytes(b"\xff\xfe")
    with pytest.raises(CommentError, match=r"report\.md is no report in Markdown"):
        comment(tmp_path / "report.md", github)


@pytest.mark.parametrize(
    ("status", "says"),
    [(403, "pull-requests: write"), (500, "answered by 500"), (429, "answered by 429"), (302, "answered by 302")],
)
def test_a_refusal_is_told_without_the_token(service, tmp_path, github, status, says):
    service.refuses = status
    (tmp_path / "report.md").write_text("text")
    with pytest.raises(CommentError, match=says) as problem:
        comment(tmp_path / "report.md", github)
    assert "secret" not in str(problem.value)
    assert len(service.asked) == 1


def test_a_token_that_is_missing_is_named(tmp_path, github, gitlab):
    (tmp_path / "report.md").write_text("text")
    for environment, name in ((github, "GITHUB_TOKEN"), (gitlab, "GPUPERF_GITLAB_TOKEN")):
        with pytest.raises(CommentError, match=name):
            comment(tmp_path / "report.md", {**environment, name: ""})


def steps(text: str) -> dict[str, str]:
    """The shell of each of the action's steps, by its name; as much YAML as the file has."""
    found: dict[str, str] = {}
    name, lines = "", text.splitlines()
    for place, line in enumerate(lines):
        if line.startswith("    - name: "):
            name = line.partition(": ")[2]
        elif line.startswith("      run: "):
            script = line.partition(": ")[2]
            if script == "|":
                block = []
                for below in lines[place + 1 :]:
                    if not below.startswith("        "):
                        break
                    block.append(below[8:])
                script = "\n".join(block)
            found[name] = script
    return found


def test_the_action_gives_no_token_to_the_job_that_runs_tests_and_evaluates_no_input():
    text = ACTION.read_text()
    assert "token" not in text
    assert "eval" not in text
    assert '"$GITHUB_ACTION_PATH[$EXTRAS]"' in steps(text)["Install"]


def test_the_actions_steps_gate_and_keep_reports(tmp_path):
    """In a folder of their own, with nothing of this process's environment but the path."""
    found = steps(ACTION.read_text())
    assert list(found) == ["Install", "Gate", "Verdict"]
    project, runner = tmp_path / "project", tmp_path / "runner"
    project.mkdir()
    runner.mkdir()
    (project / "k.cu").write_text('extern "C" __global__ void k(float* x) { x[threadIdx.x] += 1.0f; }\n')
    (project / "test_k.py").write_text(
        "def test_k(cuda_kernel, gpu, gpuperf):\n"
        "    x = gpu.zeros(32)\n"
        '    gpuperf(cuda_kernel("k.cu", "k").launch(grid=1, block=32, args=(x,)))\n'
    )
    (runner / "bin").mkdir()
    (runner / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} -u "$@"\n')
    (runner / "bin" / "python").chmod(0o755)
    base = {
        "PATH": f"{runner / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": str(tmp_path),
        "PYTHONPATH": str(ACTION.parent), "RUNNER_TEMP": str(runner), "GITHUB_OUTPUT": str(runner / "output"),
        "GITHUB_STEP_SUMMARY": str(runner / "summary"), "GITHUB_ACTIONS": "true",
    }  # fmt: skip

    def shell(step: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-e", "-o", "pipefail", "-c", found[step]], cwd=project, env={**base, **more}, text=True,
            capture_output=True, check=False,
        )  # fmt: skip

    arguments = "--gpuperf-arch=sm_90\n-p\nno:cacheprovider\n"
    for flags, status in ((arguments, "0"), (f"{arguments}--gpuperf-open=fail", "1")):
        gate = shell("Gate", AGAINST="", ARGUMENTS=flags)
        assert gate.returncode == 0, gate.stderr
        output = dict(line.split("=", 1) for line in (runner / "output").read_text().splitlines())
        assert output["status"] == status, gate.stdout
        assert "1 NEW" in Path(output["report"], "report.md").read_text()
        assert shell("Verdict", STATUS=output["status"]).returncode == int(status)
    assert "::error file=test_k.py,line=1,title=test_k::k  NEW" in gate.stdout
    assert "## gpuperf: 1 NEW" in (runner / "summary").read_text()
    assert {path.name for path in (runner / "gpuperf").iterdir()} == {"report.json", "report.md", "report.html"}
    shell("Gate", AGAINST="", ARGUMENTS="--no-such-flag")  # a second use of the action, whose run does not begin
    assert list((runner / "gpuperf").iterdir()) == []

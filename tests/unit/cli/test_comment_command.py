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
import yaml

from pytest_gpuperf.report.markdown import MARKER

ACTION = Path(__file__).parents[3] / "action.yml"
VARIABLES = ("GITHUB_EVENT_PATH", "CI_MERGE_REQUEST_IID")
PERSON = {"user": {"login": "another-app[bot]"}, "author": {"id": 1}}


class FakeService:
    """Keeps comments as GitHub and GitLab do, in pages of 100."""

    refuses = 0
    login = ""
    """Of the token's owner; a job's own token may not ask."""

    def __init__(self) -> None:
        begins = "<!-- pytest-gpuperf report: kernels -->\nof a person"
        self.comments: list[dict[str, Any]] = [{"id": number, "body": begins, **PERSON} for number in range(130)]
        self.asked: list[tuple[str, str]] = []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                service.asked.append((self.command, self.path))
                token = self.headers.get("Authorization") == "Bearer secret" or self.headers.get("PRIVATE-TOKEN")
                status = service.refuses or (200 if token else 401)
                content = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")
                if self.path == "/user" and not (service.login or self.headers.get("PRIVATE-TOKEN")):
                    status = 403
                found: Any = {"id": 2, "login": service.login} if self.path == "/user" else {}
                if status == 200 and "page=" in self.path:
                    page = int(self.path.rpartition("page=")[2])
                    found = service.comments[100 * (page - 1) : 100 * page]
                elif status == 200 and self.command == "POST":
                    own = {"user": {"login": service.login or "github-actions[bot]"}, "author": {"id": 2}}
                    service.comments.append({"id": len(service.comments), **own, **content})
                elif status == 200 and self.command != "GET":
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
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def service(monkeypatch):
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    fake = FakeService()
    yield fake
    fake.server.shutdown()
    fake.server.server_close()


@pytest.fixture
def job(service, tmp_path, monkeypatch):
    """Makes this process a job of GitHub or GitLab, with variables of its own."""

    def begun(kind: str = "github", **more: str) -> None:
        (tmp_path / "event.json").write_text('{"pull_request": {"number": 7}}')
        variables = {
            "github": {"GITHUB_EVENT_PATH": str(tmp_path / "event.json"), "GITHUB_TOKEN": "secret",
                       "GITHUB_API_URL": service.url, "GITHUB_REPOSITORY": "a/b"},
            "gitlab": {"CI_MERGE_REQUEST_IID": "7", "CI_PROJECT_ID": "a/b", "CI_API_V4_URL": service.url,
                       "GPUPERF_GITLAB_TOKEN": "secret"},
        }  # fmt: skip
        for name, value in {**variables[kind], **more}.items():
            monkeypatch.setenv(name, value)

    return begun


@pytest.fixture
def comment(tmp_path, command):
    """Status and output of the command for a report of this text."""

    def run(text: str = "text", name: str = "kernels") -> tuple[int, str]:
        (tmp_path / "report.md").write_text(text)
        status, *said = command("comment", tmp_path / "report.md", "--name", name)
        return status, "".join(said)

    return run


@pytest.mark.parametrize(("kind", "login"), [("github", ""), ("github", "somebody"), ("gitlab", "")])
def test_one_comment_is_made_and_then_updated(service, job, comment, kind, login):
    service.login = login
    job(kind)
    assert comment(f"{MARKER}\n## gpuperf: 1 SLOWER\n") == (0, "comment made\n")
    assert comment(f"{MARKER}\n## gpuperf: 1 SAME\n") == (0, "comment updated\n")
    assert comment(f"{MARKER}\n## gpuperf: 1 SAME\n", "others") == (0, "comment made\n")
    mine = [one["body"] for one in service.comments[130:]]
    assert mine == [
        "<!-- pytest-gpuperf report: kernels -->\n## gpuperf: 1 SAME\n",
        "<!-- pytest-gpuperf report: others -->\n## gpuperf: 1 SAME\n",
    ]
    assert all(one["body"].endswith("of a person") for one in service.comments[:130])


def test_a_job_of_no_request_makes_none(service, job, comment, tmp_path):
    for content in ("", '{"ref": "main"}', '{"pull_request": null}'):
        if content:
            job()
            (tmp_path / "event.json").write_text(content)
        assert comment() == (0, "no comment written: this job belongs to no pull request and no merge request\n")
    assert service.asked == []


@pytest.mark.parametrize(("kind", "token"), [("github", "GITHUB_TOKEN"), ("gitlab", "GPUPERF_GITLAB_TOKEN")])
def test_a_token_is_used_without_what_was_pasted_around_it_and_never_told(job, comment, kind, token):
    job(kind, **{token: "secret\n"})
    assert comment() == (0, "comment made\n")
    for wrong in ("", "sec\nret"):
        job(kind, **{token: wrong})
        status, said = comment()
        assert (status, f"{token} is not set, or is not one line" in said, "ret" in said) == (1, True, False)


def test_a_refusal_is_told_without_the_token(service, job, comment):
    job()
    refusals = {403: "pull-requests: write", 500: "failed with 500", 429: "failed with 429", 302: "failed with 302"}
    for service.refuses, says in refusals.items():
        service.asked.clear()
        failed, said = comment()
        assert (failed, says in said, "secret" in said, len(service.asked)) == (1, True, False, 2)
    for given in ("", "no url"):
        job("gitlab", CI_API_V4_URL=given, GITHUB_EVENT_PATH="")
        status, said = comment()
        assert (status, f"GET {given}/user got no readable answer" in said) == (1, True)


def test_the_actions_steps_gate_and_keep_reports(tmp_path):
    """In a folder of their own, with nothing of this process's environment but the path, and no token."""
    text = ACTION.read_text()
    assert "token" not in text
    assert "eval" not in text
    found = {step["name"]: step["run"] for step in yaml.safe_load(text)["runs"]["steps"] if "run" in step}
    assert list(found) == ["Install", "Gate", "Verdict"]
    assert '"$GITHUB_ACTION_PATH[$EXTRAS]"' in found["Install"]
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
    assert "## gpuperf: 1 NEW" in (runner / "summary").read_text()
    assert {path.name for path in (runner / "gpuperf").iterdir()} == {"report.json", "report.md", "report.html"}
    shell("Gate", AGAINST="", ARGUMENTS="--no-such-flag")  # a second use of the action, whose run does not begin
    assert list((runner / "gpuperf").iterdir()) == []

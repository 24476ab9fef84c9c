"""``gpuperf comment``: a report in Markdown as the one comment of a pull or merge request, made or updated in place.

GitHub and GitLab say by environment variables which request a job is for; their API is asked with the job's token and
nothing but the standard library.
"""

from __future__ import annotations

import argparse
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pytest_gpuperf.errors import GpuperfError
from pytest_gpuperf.report.markdown import MARKER

LIMIT_S = 30
JOBS = "github-actions[bot]"
"""Who writes the comments of a job's own token, on GitHub."""
PAGE, MOST_PAGES = 100, 50
"""Comments of a request that are looked through: 5,000."""


class CommentPlace(NamedTuple):
    """Where comments of one pull or merge request are."""

    url: str
    """Takes new ones, and lists them."""
    one: str
    """Of one comment, with ``{id}``."""
    method: str
    """That updates one."""
    headers: Mapping[str, str]
    own: Callable[[Any], bool]
    """Whether a job wrote a comment: anybody may write one that begins like ours."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", metavar="MD", type=Path, help="what --gpuperf-report=FILE.md wrote")
    parser.add_argument("--name", default="kernels", help="tells comments of several jobs apart (default: kernels)")


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    """Make the comment, or update the one that has the same name.

    Returns the exit status, 0; also for a job that is for no request.  Raises ``GpuperfError`` and ``OSError``.
    """
    request = _on_github() or _on_gitlab()
    if request is None:
        write("no comment written: this job belongs to no pull request and no merge request\n")
        return 0
    marker = f"<!-- pytest-gpuperf report: {parsed.name} -->"
    report = parsed.report.read_text(encoding="utf-8", errors="replace")
    text = f"{marker}\n{report.removeprefix(MARKER).lstrip()}"
    mine = (one for one in _comments(request) if one["body"].startswith(marker) and request.own(one))
    found = next(mine, None)
    if found is None:
        _asked(request.headers, "POST", request.url, {"body": text})
        write("comment made\n")
    else:
        _asked(request.headers, request.method, request.one.format(id=found["id"]), {"body": text})
        write("comment updated\n")
    return 0


def _on_github() -> CommentPlace | None:
    """The pull request that a job of GitHub is for; its comments are those of the token's owner."""
    event = os.environ.get("GITHUB_EVENT_PATH")
    request = json.loads(Path(event).read_text(encoding="utf-8")).get("pull_request") if event else None
    if request is None:
        return None
    token = _token("GITHUB_TOKEN", "give the step env: GITHUB_TOKEN: ${{ github.token }}")
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    api = os.environ.get("GITHUB_API_URL", "")
    try:
        me = _asked(headers, "GET", f"{api}/user")["login"]
    except GpuperfError:  # the token of a job may not ask
        me = JOBS
    base = f"{api}/repos/{os.environ.get('GITHUB_REPOSITORY', '')}/issues"
    url, one = f"{base}/{request['number']}/comments", f"{base}/comments/{{id}}"
    return CommentPlace(url, one, "PATCH", headers, lambda comment: bool(comment["user"]["login"] == me))


def _on_gitlab() -> CommentPlace | None:
    """The merge request that a job of GitLab is for; its comments are those of the token's owner."""
    if not os.environ.get("CI_MERGE_REQUEST_IID"):
        return None
    token = _token("GPUPERF_GITLAB_TOKEN", "give the job a project access token, scope api")
    headers = {"PRIVATE-TOKEN": token}
    api, project = os.environ.get("CI_API_V4_URL", ""), os.environ.get("CI_PROJECT_ID", "")
    me = _asked(headers, "GET", f"{api}/user")["id"]
    base = f"{api}/projects/{urllib.parse.quote(project, safe='')}/merge_requests/{os.environ['CI_MERGE_REQUEST_IID']}"
    return CommentPlace(
        f"{base}/notes", f"{base}/notes/{{id}}", "PUT", headers, lambda note: bool(note["author"]["id"] == me)
    )


def _token(name: str, remedy: str) -> str:
    """The token in a variable, without blanks and quotes around it.  Raises ``GpuperfError``, which never shows it."""
    token = os.environ.get(name, "").strip()
    if not token or not token.isascii() or not token.isprintable():
        raise GpuperfError(f"{name} is not set, or is not one line of plain characters: {remedy}")
    return token


def _comments(request: CommentPlace) -> Iterator[Any]:
    for page in range(1, MOST_PAGES + 1):
        found = _asked(request.headers, "GET", f"{request.url}?per_page={PAGE}&page={page}")
        yield from found
        if len(found) < PAGE:
            return


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: following it would send the token to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _asked(headers: Mapping[str, str], method: str, url: str, content: Mapping[str, Any] | None = None) -> Any:
    """The answer.  Raises ``GpuperfError``, whose message has no token in it."""
    data = None if content is None else json.dumps(content).encode()
    every = {**headers, "Content-Type": "application/json", "User-Agent": "pytest-gpuperf"}
    try:
        asking = urllib.request.Request(url, data=data, headers=every, method=method)
        with urllib.request.build_opener(NoRedirect).open(asking, timeout=LIMIT_S) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as problem:
        problem.close()
        raise GpuperfError(
            f"{method} {url} failed with {problem.code} {problem.reason}. To do: give the job the permission "
            "pull-requests: write (GitHub), or a token with the scope api (GitLab)"
        ) from None
    except (urllib.error.URLError, TimeoutError, ValueError) as problem:
        raise GpuperfError(f"{method} {url} got no readable answer ({problem}): run the job again") from None

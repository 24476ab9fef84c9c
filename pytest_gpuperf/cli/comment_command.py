"""``gpuperf comment``: a report in Markdown as the one comment of a pull or merge request, made or updated in place.

GitHub and GitLab say by environment variables which request a job is for; their API is asked with the job's token and
nothing but the standard library.
"""

from __future__ import annotations

import argparse
import functools
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
PAGE = 100
MOST_PAGES = 50
"""Comments of a request that are looked through: 5,000."""
OWN_ON_GITHUB = """\
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      comments(first: 100, after: $after) {
        nodes { databaseId body viewerDidAuthor }
        pageInfo { endCursor hasNextPage }
      }
    }
  }
}
"""


class CommentError(GpuperfError):
    """No comment was written; the message says why and what to do."""


class CommentPlace(NamedTuple):
    """Where comments of one pull or merge request are."""

    url: str
    """Takes new ones."""
    one: str
    """Of one comment, with ``{id}``."""
    method: str
    """That updates one."""
    headers: Mapping[str, str]
    own: Callable[[CommentPlace], Iterator[tuple[int, str]]]
    """Ids and texts of those that this job's token wrote: anybody may write a comment that begins like ours."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("report", metavar="MD", type=Path, help="what --gpuperf-report=FILE.md wrote")
    parser.add_argument("--name", default="kernels", help="tells comments of several jobs apart (default: kernels)")


def execute(parsed: argparse.Namespace, write: Callable[[str], object]) -> int:
    return run(parsed.report, parsed.name, write=write)


def run(report: Path, name: str, *, write: Callable[[str], object], environment: Mapping[str, str] = os.environ) -> int:
    """Make the comment, or update the one that has the same name.

    Returns the exit status, 0; also for a job that is for no request.  Raises ``CommentError`` and ``OSError``.
    """
    request = request_of(environment)
    if request is None:
        write("no comment: this job is for no pull request and no merge request\n")
        return 0
    marker = f"<!-- pytest-gpuperf report: {name} -->"
    try:
        text = report.read_text(encoding="utf-8").replace(MARKER, marker, 1)
    except ValueError as problem:
        raise CommentError(f"{report} is no report in Markdown ({problem}): name what --gpuperf-report wrote") from None
    if marker not in text:
        text = f"{marker}\n{text}"
    found = next((number for number, body in request.own(request) if body.startswith(marker)), None)
    if found is None:
        _asked(request, "POST", request.url, {"body": text})
        write("comment made\n")
    else:
        _asked(request, request.method, request.one.format(id=found), {"body": text})
        write("comment updated\n")
    return 0


def request_of(environment: Mapping[str, str]) -> CommentPlace | None:
    """The request that this job is for; None for none.  Raises ``CommentError`` without a token."""
    event = environment.get("GITHUB_EVENT_PATH")
    if event:
        return _of_github(Path(event), environment)
    if environment.get("CI_MERGE_REQUEST_IID"):
        remedy = "give the job a project access token, scope api"
        token = _token("GPUPERF_GITLAB_TOKEN", environment, remedy)
        lacking = [name for name in ("CI_PROJECT_ID", "CI_API_V4_URL") if not environment.get(name)]
        if lacking:
            raise CommentError(f"{lacking[0]} is not set, as GitLab does in its jobs: run the command in one of them")
        project = urllib.parse.quote(environment["CI_PROJECT_ID"], safe="")
        base = f"{environment['CI_API_V4_URL']}/projects/{project}/merge_requests/{environment['CI_MERGE_REQUEST_IID']}"
        own = functools.partial(_own_on_gitlab, f"{environment['CI_API_V4_URL']}/user")
        return CommentPlace(f"{base}/notes", f"{base}/notes/{{id}}", "PUT", {"PRIVATE-TOKEN": token}, own)
    return None


def _of_github(event: Path, environment: Mapping[str, str]) -> CommentPlace | None:
    try:
        told = json.loads(event.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise CommentError(f"{event} is no event of GitHub ({problem})") from problem
    request = told.get("pull_request") if isinstance(told, dict) else None
    number = request.get("number") if isinstance(request, dict) else None
    if not isinstance(number, int):
        return None
    token = _token("GITHUB_TOKEN", environment, "give the step env: GITHUB_TOKEN: ${{ github.token }}")
    api = environment.get("GITHUB_API_URL", "https://api.github.com")
    graphql = environment.get("GITHUB_GRAPHQL_URL", "https://api.github.com/graphql")
    repository = environment.get("GITHUB_REPOSITORY", "")
    base = f"{api}/repos/{repository}/issues"
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"}
    own = functools.partial(_own_on_github, graphql, repository, number)
    return CommentPlace(f"{base}/{number}/comments", f"{base}/comments/{{id}}", "PATCH", headers, own)


def _token(name: str, environment: Mapping[str, str], remedy: str) -> str:
    """The token that a variable holds, less what was pasted around it.  Raises ``CommentError``, and never tells it."""
    token = environment.get(name, "").strip()
    if not token:
        raise CommentError(f"{name} is not set: {remedy}")
    if not token.isascii() or not token.isprintable():
        raise CommentError(f"{name} has characters that no token has, such as line breaks: set it anew, as one line")
    return token


def _own_on_github(graphql: str, repository: str, number: int, request: CommentPlace) -> Iterator[tuple[int, str]]:
    owner, _, name = repository.partition("/")
    after = None
    for _ in range(MOST_PAGES):
        variables = {"owner": owner, "name": name, "number": number, "after": after}
        told = _asked(request, "POST", graphql, {"query": OWN_ON_GITHUB, "variables": variables})
        try:
            comments = told["data"]["repository"]["pullRequest"]["comments"]
            found = [(one["databaseId"], one["body"]) for one in comments["nodes"] if one["viewerDidAuthor"]]
            after = comments["pageInfo"]["endCursor"] if comments["pageInfo"]["hasNextPage"] else None
        except (KeyError, TypeError):
            raise CommentError(f"{graphql} does not list the comments of {repository}#{number}: {told}") from None
        yield from found
        if after is None:
            return


def _own_on_gitlab(user: str, request: CommentPlace) -> Iterator[tuple[int, str]]:
    me = _asked(request, "GET", user)["id"]
    for page in range(1, MOST_PAGES + 1):
        notes = _asked(request, "GET", f"{request.url}?per_page={PAGE}&page={page}")
        yield from ((one["id"], one["body"]) for one in notes if one["author"]["id"] == me)
        if len(notes) < PAGE:
            return


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: what follows it would send the token to another host."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _asked(request: CommentPlace, method: str, url: str, content: Mapping[str, Any] | None = None) -> Any:
    """The answer.  Raises ``CommentError``, whose message has no token in it."""
    data = None if content is None else json.dumps(content).encode()
    headers = {**request.headers, "Content-Type": "application/json", "User-Agent": "pytest-gpuperf"}
    try:
        asking = urllib.request.Request(url, data=data, headers=headers, method=method)
        with urllib.request.build_opener(NoRedirect).open(asking, timeout=LIMIT_S) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as problem:
        problem.close()
        refused = problem.code in (401, 403, 404)
        remedy = ". Does the job have the permission pull-requests: write?" if refused else ""
        raise CommentError(f"{method} {url} was answered by {problem.code} {problem.reason}{remedy}") from None
    except (urllib.error.URLError, TimeoutError, ValueError) as problem:
        raise CommentError(f"{method} {url} got no answer that can be read ({problem})") from None

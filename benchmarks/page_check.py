"""The HTML report of 1,000 workloads in a browser: size, seconds to open and sort, controls, links, accessibility.

    pip install playwright jinja2
    npm pack axe-core && tar xzf axe-core-*.tgz
    python benchmarks/page_check.py --chromium /usr/bin/chromium --axe package/axe.min.js --pictures DIR

Workloads are those on record for an NVIDIA H200, with verdicts made for them and hostile names.  Exits with 1 if
anything is not as it should be, and names it.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from pytest_gpuperf.baselines.store import BaselineStore  # noqa: E402
from pytest_gpuperf.model.advice import Advice  # noqa: E402
from pytest_gpuperf.model.evidence import Key  # noqa: E402
from pytest_gpuperf.model.result import TestEvidence, WorkloadEvidence  # noqa: E402
from pytest_gpuperf.model.time_record import TimeRecord, mean_time_ns  # noqa: E402
from pytest_gpuperf.model.verdict import Change, Judgement, TimeFigures, Verdict  # noqa: E402
from pytest_gpuperf.report.document import document_of  # noqa: E402
from pytest_gpuperf.report.render import as_page  # noqa: E402

WORKLOADS, BLOCKS = 1000, 23
MOST_BYTES, MOST_OPEN_S, MOST_SORT_MS = 3_000_000, 1.0, 100.0
HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "</script><script>alert(1)</script>", "'\"><b>",
    "<!-- ", "-->", "<![CDATA[", "]]>", "javascript:alert(1)", "{{ 7 * 7 }}", "{% raw %}", "${alert(1)}", "`", "\\",
    "\u202egnp.exe", "\u2028", "\x00", "\x1b[31m", "a" * 300, "</pre>", "</td></tr></table>", "&lt;script&gt;",
    "&#x3c;", "<svg onload=alert(1)>", "<a href='javascript:alert(1)'>", "<style>*{display:none}</style>",
    "<base href=//x>", "<meta http-equiv=refresh content=0>", "<iframe src=//x>", "%00", "../../etc", "=1+1",
    "</title>",
]  # fmt: skip
VERDICTS = [Verdict.SLOWER, Verdict.INCONCLUSIVE, Verdict.FASTER, *[Verdict.SAME] * 7, *[Verdict.UNCHANGED] * 10]


def recorded() -> Iterator[tuple[Key, TimeRecord, dict[str, Any]]]:
    store = BaselineStore(ROOT / "baselines")
    for target, module in store.places():
        codes = store.load("sm_90", module)
        for (key, _), record in store.load(target, module).items() if target == "nvidia-h200" else ():
            static = dict([("sm_90", code) for (known, _), code in codes.items() if known == key][-1:])
            yield key, record, static


def evidence() -> list[TestEvidence]:
    records = list(recorded())
    tests = []
    for number in range(WORKLOADS):
        key, record, static = records[number % len(records)]
        name = HOSTILE[number] if number < len(HOSTILE) else key.workload
        key = msgspec.structs.replace(key, test=f"{key.test.partition('[')[0]}[{number}]", workload=name)
        verdict = VERDICTS[number % len(VERDICTS)]
        ratio = {Verdict.SLOWER: 1.02 + number % 7 / 100, Verdict.FASTER: 0.97}.get(verdict, 1.0)
        time_ns = mean_time_ns(record.rounds)
        figures = TimeFigures(
            method="paired", ratio=ratio, interval=(ratio * 0.998, ratio * 1.002), before_ns=time_ns / ratio,
            after_ns=time_ns, tolerance=0.005, blocks=BLOCKS, log_e=12.0, log_e_needed=9.0,
            block_ratios=tuple(round(ratio + 0.001 * math.sin(number + one), 5) for one in range(BLOCKS)),
            log_e_path=tuple(round(0.5 * one - 0.5, 3) for one in range(BLOCKS)),
        )  # fmt: skip
        slower = verdict is Verdict.SLOWER
        changes = (
            Change(what="registers", before=32, after=33 + number % 9, direction="worse"),
            Change(what="instructions: fp64", before=0, after=1 + number % 7),
        ) if slower else ()  # fmt: skip
        judged = Judgement(
            key=key, target="nvidia-h200", kind="time", verdict=verdict, time=figures, changes=changes,
        )  # fmt: skip
        cause = (Advice(cause="double-precision literals", evidence=(), gain=0.2, arch="sm_90"),) if slower else ()
        work = WorkloadEvidence(
            key=key, static=static, time=record, interval_ns=(time_ns * 0.999, time_ns * 1.001), judgements=(judged,),
            toolchain="nvrtc 13.0.88", advice=cause,
        )  # fmt: skip
        peaks = {"copy_bandwidth": 4.27e12, "fma_throughput": 6.49e13}
        size = {"size": str(1 << number % 12)}
        tests.append(TestEvidence(module=key.module, test=key.test, workloads=(work,), peaks=peaks, parameters=size))
    return tests


def page() -> str:
    tests = evidence()
    document = document_of(
        tests, date="2026-11-23T12:00:00Z", plugin="0.1.0", task="gating", exit_status=1, problems=[],
        warnings=[], machines=["NVIDIA H200"],
    )  # fmt: skip
    return as_page(document)


def check(page_file: Path, chromium: str, axe: Path, pictures: Path | None) -> list[str]:
    from playwright.sync_api import sync_playwright

    problems: list[str] = []

    def expect(what: str, holds: object) -> None:
        print(f"{'ok  ' if holds else 'FAIL'} {what}")
        if not holds:
            problems.append(what)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1280, "height": 900}, bypass_csp=True)
        said: list[str] = []
        asked: list[str] = []
        tab.on("console", lambda message: said.append(message.text))
        tab.on("pageerror", lambda error: said.append(str(error)))
        tab.on("dialog", lambda dialog: (said.append("a dialog"), dialog.dismiss()))
        tab.on("request", lambda request: asked.append(request.url))
        url = page_file.as_uri()
        begun = time.monotonic()
        tab.goto(url, wait_until="load")
        seconds = time.monotonic() - begun
        expect(f"{page_file.stat().st_size} bytes, at most {MOST_BYTES}", page_file.stat().st_size <= MOST_BYTES)
        expect(f"opens in {seconds:.2f} s, at most {MOST_OPEN_S}", seconds <= MOST_OPEN_S)
        expect(f"{WORKLOADS} workloads", tab.locator("tbody[id]").count() == WORKLOADS)
        took = tab.evaluate(
            "() => { const button = document.querySelector('[data-key=time] button'); const t = performance.now();"
            " button.click(); document.body.offsetHeight; return performance.now() - t; }"
        )
        expect(f"sorts in {took:.0f} ms, at most {MOST_SORT_MS:.0f}", took <= MOST_SORT_MS)
        times = tab.evaluate("() => [...document.querySelectorAll('tbody[id]')].map((one) => +one.dataset.time)")
        expect("sorted by time, the longest first", times == sorted(times, reverse=True))
        expect("says so to a screen reader", tab.locator("th[aria-sort=descending]").count() == 1)
        tab.fill("#filter", "double-precision literals")
        slower = math.ceil(WORKLOADS / len(VERDICTS))
        expect("search finds causes, with a count", tab.inner_text("#count") == f"{slower} of {WORKLOADS} shown")
        expect("the state is in the URL", "q=double" in tab.url and "sort=time" in tab.url)
        again = browser.new_page(bypass_csp=True)
        again.goto(tab.url)
        expect("and comes back from it", again.inner_text("#count") == f"{slower} of {WORKLOADS} shown")
        again.goto(f"{url}#w500")
        again.reload()
        expect("an anchor opens its workload", again.locator("#w500 details[open]").count() == 1)
        expect("its rounds and blocks are drawn", again.locator("#w500 canvas").count() == 2)
        again.goto(url)
        again.locator("summary", has_text="Sweeps").click()
        again.locator("[data-sweep] summary").first.click()
        expect("a sweep is drawn", again.locator("[data-sweep] canvas").count() == 1)
        again.close()
        tab.fill("#filter", "")
        tab.uncheck("[data-verdict=SLOWER]")
        expect("verdicts are toggled", tab.inner_text("#count") == f"{WORKLOADS - slower} of {WORKLOADS} shown")
        tab.check("[data-verdict=SLOWER]")
        tab.focus("th[data-key=workload] button")
        tab.keyboard.press("Enter")
        expect("sorted by the keyboard", tab.locator("th[data-key=workload][aria-sort=ascending]").count() == 1)
        expect(f"{len(HOSTILE)} hostile names are text", tab.locator("main script, main iframe, main svg").count() == 0)
        tab.goto(url)
        tab.add_script_tag(path=str(axe))
        for scheme in ("light", "dark"):
            tab.emulate_media(color_scheme=scheme)
            found = tab.evaluate("() => axe.run(document, {resultTypes: ['violations']})")["violations"]
            expect(f"axe-core finds nothing ({scheme}): {[one['id'] for one in found]}", not found)
        if pictures is not None:
            shoot(browser, url, pictures)
        expect(f"no word on the console: {said[:3]}", not said)
        others = [one for one in asked if not one.startswith(url) and not one.startswith("data:")]
        expect(f"no request: {others[:3]}", not others)
        browser.close()
    return problems


def shoot(browser: Any, url: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    kinds = {"wide": {}, "narrow": {}, "dark": {"color_scheme": "dark"}, "print": {"media": "print"}}
    for name, media in kinds.items():
        width = 390 if name == "narrow" else 1280
        tab = browser.new_page(viewport={"width": width, "height": 900})
        tab.emulate_media(**media)
        tab.goto(url)
        tab.wait_for_timeout(300)
        tab.screenshot(path=str(folder / f"{name}.png"))
        tab.close()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chromium", required=True, help="its executable")
    parser.add_argument("--axe", required=True, type=Path, help="axe.min.js")
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="leave screenshots there")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "page.html"
        file.write_text(page(), encoding="utf-8")
        problems = check(file, chosen.chromium, chosen.axe, chosen.pictures)
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())

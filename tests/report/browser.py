#!/usr/bin/env python3
"""Opens the page of a run in headless Chromium, and looks: at its errors, its width, its colours, its
keyboard, its print. Usage: browser.py --program PRUNER [--keep FOLDER]; exits with 77 without Chromium.
Needs Python's standard library alone: the DevTools protocol goes over a pair of pipes.
"""
import argparse
import base64
import fcntl
import json
import os
import shutil
import select
import subprocess
import sys
import tempfile
import time
import zlib

WIDTHS = (400, 1600)
SCHEMES = ("light", "dark")
LIMIT_S = 60
HOSTILE = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>&\u2028"


class Browser:
    """One page of a Chromium that this starts."""

    def __init__(self, chromium, folder):
        read, self.commands = os.pipe()
        self.events, write = os.pipe()
        # Chromium takes commands from 3 and answers to 4; from 10 on no number is in the way.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (read, write)]
        self.process = subprocess.Popen(
            ["bash", "-c", 'exec 3<&%d 4>&%d; exec "$@"' % tuple(ends), "bash", chromium,
             "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-extensions", "--remote-debugging-pipe", "--user-data-dir=" + folder, "about:blank"],
            pass_fds=ends, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for end in (read, write, *ends):
            os.close(end)
        self.number, self.buffer, self.seen = 0, b"", []
        self.session = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")

    def close(self):
        self.process.terminate()
        self.process.wait(10)

    def message(self):
        end = time.monotonic() + LIMIT_S
        while b"\0" not in self.buffer:
            if not select.select([self.events], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("Chromium does not answer")
            part = os.read(self.events, 1 << 20)
            if not part:
                raise EOFError("Chromium has ended")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **params):
        self.number += 1
        request = {"id": self.number, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.commands, json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            if answer.get("id") != self.number:
                self.seen.append(answer)
                continue
            if "error" in answer:
                raise RuntimeError("%s: %s" % (method, answer["error"]))
            return answer["result"]

    def open(self, path):
        self.seen.clear()
        self.call("Page.navigate", url="file://" + path)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.seen):
            self.seen.append(self.message())

    def value(self, script):
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError("%s: %s" % (script, result["exceptionDetails"]))
        return result["result"].get("value")

    def press(self, key, code):
        for kind in ("rawKeyDown", "char", "keyUp"):
            text = {"text": "\r" if key == "Enter" else " "} if kind == "char" else {}
            if kind == "char" and key == "Tab":
                continue
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    def errors(self):
        found = []
        for event in self.seen:
            params = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"]["text"] + str(params["exceptionDetails"].get("exception")))
            elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
                found.append(params["entry"]["text"])
            elif event.get("method") == "Runtime.consoleAPICalled" and params["type"] == "error":
                found.append(str(params["args"]))
        return found


failures = []


def check(holds, what):
    if not holds:
        failures.append(what)
        print("FAILED: " + what)


def is_blank(png):
    """Whether the picture's rows are all alike."""
    data, at = b"", 8
    while at < len(png):
        size = int.from_bytes(png[at:at + 4], "big")
        if png[at + 4:at + 8] == b"IDAT":
            data += png[at + 8:at + 8 + size]
        at += size + 12
    return len(set(zlib.decompress(data))) < 50


OUTSIDE = """[...document.querySelectorAll('figure svg, figure canvas, table.bars svg')]
  .filter(e => e.checkVisibility()).map(e => e.getBoundingClientRect())
  .filter(b => b.width < 1 || b.left < 0 || b.right > innerWidth).length"""
OVERLAPS = """[...document.querySelectorAll('figure > svg')].map(svg => {
  const boxes = [...svg.querySelectorAll('text')].map(t => t.getBBox());
  return boxes.filter((a, i) => boxes.some((b, j) => i < j && a.x < b.x + b.width - 1 && b.x < a.x + a.width - 1 &&
    a.y < b.y + b.height - 3 && b.y < a.y + a.height - 3)).length + boxes.filter(a => a.x < 0 || a.x + a.width > svg.viewBox.baseVal.width).length;
}).reduce((a, b) => a + b, 0)"""
EMPTY_CANVASES = """[...document.querySelectorAll('canvas')].filter(canvas => {
  const data = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
  return new Set(data).size < 10;
}).length"""
BRIGHTNESS = """getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3)
  .reduce((sum, part) => sum + Number(part), 0) / 3"""
CONTROLS = """window.controls = [...document.querySelectorAll('a[href], button, summary, [tabindex="0"]')]
  .filter(e => e.checkVisibility()); controls.length"""


def look(browser, page, width, scheme, keep):
    name = "%d %s" % (width, scheme)
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
    browser.call("Emulation.setEmulatedMedia", media="",
                 features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(page)
    check(not browser.errors(), "%s: errors: %s" % (name, browser.errors()))
    check(browser.value("document.documentElement.scrollWidth <= innerWidth"), name + ": the page is too wide")
    check(browser.value("document.querySelectorAll('figure').length") >= 4, name + ": figures are missing")
    check(browser.value(OUTSIDE) == 0, name + ": a figure is not inside of the page")
    check(browser.value(EMPTY_CANVASES) == 0, name + ": a live figure is empty")
    bright = browser.value(BRIGHTNESS)
    check(bright > 200 if scheme == "light" else bright < 60, "%s: the paper is %s" % (name, bright))
    size = browser.call("Page.getLayoutMetrics")["cssContentSize"]
    png = base64.b64decode(browser.call(
        "Page.captureScreenshot", captureBeyondViewport=True,
        clip={"x": 0, "y": 0, "width": width, "height": min(size["height"], 8000), "scale": 1})["data"])
    check(not is_blank(png), name + ": the page is blank")
    if keep:
        with open(os.path.join(keep, name.replace(" ", "-") + ".png"), "wb") as out:
            out.write(png)


def look_at_keyboard(browser, live):
    count = browser.value(CONTROLS)
    check(count > 10, "controls are missing: %d" % count)
    order = []
    for _ in range(count):
        browser.press("Tab", 9)
        order.append(browser.value("controls.indexOf(document.activeElement)"))
    check(order == list(range(count)), "Tab goes through %s of %d" % (order, count))
    browser.value("document.querySelector('summary').focus()")
    browser.press("Enter", 13)
    check(browser.value("document.querySelector('details').open"), "Enter does not open a table")
    browser.value("document.querySelector('.skip').focus()")
    browser.press("Enter", 13)
    check(browser.value("document.activeElement.id") == "main", "the skip link does not skip")
    if not live:
        return
    shown = "(() => { const x = Chart.getChart(document.querySelector('canvas')).scales.x; return x.max - x.min; })()"
    before = browser.value(shown)
    browser.value("document.querySelector('.tools button').focus()")
    browser.press("Enter", 13)
    check(browser.value(shown) < before, "Enter on + does not zoom in")


def look_at_print(browser, page, keep):
    browser.open(page)
    browser.call("Emulation.setEmulatedMedia", media="print", features=[])
    check(browser.value("[...document.querySelectorAll('figure > svg')].every(e => e.checkVisibility())"),
          "figures are not printed")
    check(browser.value("[...document.querySelectorAll('canvas, nav, .tools')].every(e => !e.checkVisibility())"),
          "the print has controls")
    check(browser.value(OVERLAPS) == 0, "labels cover each other: %s" % browser.value(OVERLAPS))
    pdf = base64.b64decode(browser.call("Page.printToPDF", printBackground=False)["data"])
    check(pdf.startswith(b"%PDF") and len(pdf) > 10000, "nothing is printed")
    if keep:
        with open(os.path.join(keep, "print.pdf"), "wb") as out:
            out.write(pdf)
    browser.call("Emulation.setEmulatedMedia", media="", features=[])


def make_pages(program, folder):
    """The page of a run, and that of one whose input has a hostile name."""
    run = os.path.join(folder, "run")
    subprocess.run([program, "tune", "--op", "conv2d 1 14 14 32 32 3 3 padding=1 +bias +relu", "--n-trials", "24",
                    "--cost-model", "draft-only", "--threads", "1", "--work-dir", run], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    pages = []
    for name in ("page", "hostile"):
        if name == "hostile":
            for path in ("run.json", "tasks.json"):
                replace_names(os.path.join(run, path))
        pages.append(os.path.join(folder, name + ".html"))
        subprocess.run([program, "report", run, "--peer", "a peer=0.5", "-o", pages[-1]], check=True,
                       stdout=subprocess.DEVNULL)
    return pages


def replace_names(path):
    with open(path) as file:
        data = json.load(file)
    for key in ("input", "command", "name"):
        if key in data:
            data[key] = HOSTILE
    with open(path, "w") as out:
        out.write(json.dumps(data) + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--page", help="looks at this page instead of one of its own")
    parser.add_argument("--keep", help="folder for pictures of the page")
    options = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not chromium:
        print("no Chromium here (Debian package chromium): the page was not looked at")
        return 77
    with tempfile.TemporaryDirectory(prefix="pruner-browser-") as folder:
        page, hostile = [options.page, None] if options.page else make_pages(options.program, folder)
        browser = Browser(chromium, os.path.join(folder, "profile"))
        try:
            for width in WIDTHS:
                for scheme in SCHEMES:
                    look(browser, os.path.abspath(page), width, scheme, options.keep)
            look_at_keyboard(browser, browser.value("typeof Chart") == "function")
            look_at_print(browser, os.path.abspath(page), options.keep)
            if hostile:
                browser.open(hostile)
                check(not browser.errors(), "hostile: errors: %s" % browser.errors())
                check(browser.value("window.hacked") is None, "a name became a script")
                check(browser.value("document.images.length") == 0, "a name became an element")
                check("</script>" in browser.value("document.querySelector('h1').textContent"), "a name is lost")
        finally:
            browser.close()
    print("%d failures" % len(failures))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

"""Downloads source packages from PyPI and unpacks some of the web pages in them. Argument: the folder to write to."""

import html
import io
import os
import re
import sys
import tarfile
import urllib.parse
import urllib.request

from pip._internal.models.index import PyPI

INDEX = os.environ.get("PIP_INDEX_URL", PyPI.simple_url).rstrip("/") + "/"
# Documentation by three generators, and pages of many different sites.
PACKAGES = [("lxml", "5.3.0"), ("mako", "1.1.6"), ("sqlalchemy", "1.3.24"), ("trafilatura", "0.8.2")]
PAGES_EACH = 28
SIZES = range(4_000, 150_000)


def fetch(url):
    request = urllib.request.Request(url, headers={"Accept": "text/html"})
    with urllib.request.urlopen(request, timeout=120) as response:
        return response.read()


def archive(name, version):
    page = INDEX + name + "/"
    links = re.findall(r'<a[^>]*href="([^"]+)"[^>]*>([^<]+)</a>', fetch(page).decode())
    wanted = f"{name}-{version}.tar.gz"
    url = next(html.unescape(link) for link, text in links if text.strip().lower() == wanted)
    return tarfile.open(fileobj=io.BytesIO(fetch(urllib.parse.urljoin(page, url))))


for name, version in PACKAGES:
    package = archive(name, version)
    pages = [it for it in package.getmembers() if it.isfile() and it.name.endswith(".html") and it.size in SIZES]
    pages.sort(key=lambda page: page.name)
    step = max(1, len(pages) / PAGES_EACH)
    chosen = {int(number * step) for number in range(PAGES_EACH) if number * step < len(pages)}
    for number in sorted(chosen):
        target = os.path.join(sys.argv[1], f"{name}-{number}-{os.path.basename(pages[number].name)}")
        with open(target, "wb") as out:
            out.write(package.extractfile(pages[number]).read())

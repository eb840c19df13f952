"""check.py SITE PACKAGE: every public name has a place in the site, and every link within the site leads somewhere."""

import ast
import html.parser
import os
import re
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.ids, self.links = set(), []
        with open(path) as file:
            self.feed(file.read())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids.add(given.get("id"))
        self.links += [given[name] for name in ("href", "src") if given.get(name)]


def public_names(folder):
    """The names that __all__ of public modules has."""
    for parent, _, files in os.walk(folder):
        for name in files:
            module = os.path.relpath(os.path.join(parent, name), os.path.dirname(folder))[:-len(".py")]
            if name.endswith(".py") and (name == "__init__.py" or not name.startswith("_")):
                with open(os.path.join(parent, name)) as file:
                    found = re.search(r"^__all__ = (\[.*?\])", file.read(), re.M | re.S)
                module = re.sub("/__init__$", "", module).replace("/", ".")
                yield from (f"{module}.{name}" for name in ast.literal_eval(found[1] if found else "[]"))


def main():
    site, folder = (os.path.abspath(path) for path in sys.argv[1:3])
    pages = {os.path.join(parent, name): None for parent, _, files in os.walk(site) for name in files}
    pages.update((path, Page(path)) for path in pages if path.endswith(".html"))
    ids = set().union(*(page.ids for page in pages.values() if page))
    # A module's name stands for its page.
    wrong = [f"{name} is not documented" for name in public_names(folder) if not {name, "module-" + name} & ids]
    links = 0
    for path, page in pages.items():
        for link in page.links if page else ():
            target, place = urllib.parse.urldefrag(link)
            if urllib.parse.urlparse(target).scheme:
                continue
            links += 1
            to = os.path.normpath(os.path.join(os.path.dirname(path), target.split("?")[0])) if target else path
            if to not in pages or (place and pages[to] and place not in pages[to].ids):
                wrong.append(f"{os.path.relpath(path, site)}: {link} leads nowhere")
    print(*wrong, f"{len(pages)} files, {links} links, {len(wrong)} faults", sep="\n")
    return 1 if wrong or not links else 0


if __name__ == "__main__":
    sys.exit(main())

"""Checks that every relative link of Markdown files leads to something: a file or folder, and in it the heading.

usage: python3 tests/repository/check_links.py FILE.md...        prints FILE: LINK: what is missing, and fails if one is
"""
import os
import re
import sys


def text_of(path):
    """A file without its blocks of code and its code in lines."""
    with open(path, encoding="utf-8") as file:
        text = re.sub(r"^```.*?^```", "", file.read(), flags=re.S | re.M)
    return text


def anchors(path):
    """The anchors that GitHub gives the headings of a file."""
    found, seen = set(), {}
    for heading in re.findall(r"^#{1,6} +(.*?) *#*$", text_of(path), flags=re.M):
        heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = seen.get(slug, 0)
        seen[slug] = number + 1
        found.add(f"{slug}-{number}" if number else slug)
    return found


def missing(path):
    """(link, what is missing) of each link of a file that leads nowhere."""
    text = re.sub(r"`[^`\n]*`", "", text_of(path))
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
        if not os.path.exists(target):
            yield link, "no such file"
        elif anchor and (not target.endswith(".md") or anchor not in anchors(target)):
            yield link, "no such heading"


def main():
    found = [f"{path}: {link}: {what}" for path in sys.argv[1:] for link, what in missing(path)]
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

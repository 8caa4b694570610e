"""What a visitor of the page does, in the tests of all pages: goes to a screen, reads numbers, presses keys, asks."""

import http.client
from decimal import ROUND_HALF_UP, Decimal


def screens_of(page):
    return [link.get_attribute("href")[1:] for link in page.query_selector_all("nav[aria-label=Screens] a")]


def to_fixed(value, digits):
    """A number as a browser writes it: of two equally near, the one further from zero (Python takes the even one)."""
    return str(Decimal(value).quantize(Decimal(10) ** -digits, ROUND_HALF_UP))


def go(page, screen, state=""):
    page.evaluate("hash => { location.hash = hash }", f"{screen}{state}")
    page.wait_for_selector(f"nav[aria-label=Screens] a[href^='#{screen}'][aria-current=page]")


def cells_of(page, shape):
    rows, columns = shape
    page.wait_for_function(
        "([rows, columns]) => { const all = document.querySelectorAll('table[role=grid] tbody tr');"
        " return all.length === rows && all[0].querySelectorAll('td').length === columns }", arg=[rows, columns],
    )  # fmt: skip
    return page.eval_on_selector_all(
        "table[role=grid] tbody tr", "rows => rows.map(row => [...row.querySelectorAll('td')].map(c => c.innerText))"
    )


def tab_to(page, selector, key="Tab"):
    """Press it, as often as it takes, until the focus is there."""
    for _ in range(200):
        page.keyboard.press(key)
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
    raise AssertionError(f"{key} does not reach {selector}")


def ask(address, method, path, body=None, **headers):
    host = address.removeprefix("http://").strip("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    connection.request(method, path, body, {"Content-Type": "application/json", **headers})
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found

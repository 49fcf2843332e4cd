"""Lines of source as a terminal shows them: tabs widened, control characters made visible, columns counted in cells."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len

TAB = 4


@dataclass(frozen=True)
class PrintedLine:
    """One line of source. `text` is what is printed; `cells[i]` is the cell in which code point i starts, `cells[-1]` where it ends."""

    text: str
    cells: tuple[int, ...]

    @property
    def width(self) -> int:
        """Returns how many cells the line takes."""
        return self.cells[-1]

    def cell(self, column: int) -> int:
        """The cell in which a 0-based code-point column starts; the line's end for columns past it."""
        return self.cells[min(max(column, 0), len(self.cells) - 1)]


def row(line: str) -> PrintedLine:
    """Lay out one line (without its line end)."""
    text: list[str] = []
    cells = [0]
    for character in line:
        if character == "\t":
            character = " " * (TAB - cells[-1] % TAB)
        elif ord(character) < 0x20:
            # A terminal would act on it: an escape sequence in a source file must not recolour or move anything.
            character = chr(0x2400 + ord(character))
        elif 0x7F <= ord(character) < 0xA0 or 0x202A <= ord(character) <= 0x202E or 0x2066 <= ord(character) <= 0x2069:
            character = "\N{REPLACEMENT CHARACTER}"
        text.append(character)
        cells.append(cells[-1] + cell_len(character))
    return PrintedLine("".join(text), tuple(cells))

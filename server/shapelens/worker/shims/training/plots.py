"""Figures and what is drawn into them: nothing is drawn, and everything about them can be asked for.

Drawing takes long, of data that nobody knows above all, and shows in no shape. What a program takes from these libraries besides that is
theirs: colour maps, settings, styles.
"""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any, Iterator, List

from ...unknown import unknown_sizes
from ...unknown.stand_ins import absent, called
from ..compilers import Replacement
from .trackers import Record

MOST_AXES = 4096
# Functions of `matplotlib.pyplot` that draw nothing: what they give is used for something else.
REAL = {
    "get_cmap", "set_cmap", "get_plot_commands", "rc", "rc_context", "rcdefaults", "imread", "figaspect", "set_loglevel", "xkcd",
    "get_backend", "isinteractive", "install_repl_displayhook", "uninstall_repl_displayhook",
}  # fmt: skip
# Functions of `seaborn` that draw; the others choose colours and styles.
DRAWN_BY_SEABORN = (
    "barplot boxenplot boxplot catplot clustermap countplot displot distplot ecdfplot heatmap histplot jointplot kdeplot lineplot lmplot "
    "pairplot palplot pointplot regplot relplot residplot rugplot scatterplot stripplot swarmplot violinplot despine move_legend "
    "FacetGrid PairGrid JointGrid"
)


class Plot(Record):
    """A figure, its axes, what is drawn into them. As one of several it is one: `line, = axes.plot(values)`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Plot()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Plot()

    def __getitem__(self, key: Any) -> "Plot":
        return Plot()

    def __iter__(self) -> Iterator[Any]:
        return iter((Plot(),))

    def __len__(self) -> int:
        return 1

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise _unknown()

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise _unknown()

    def subplots(self, *args: Any, **kwargs: Any) -> Any:
        """The axes of a figure."""
        return axes_of(*args, **kwargs)

    def hist(self, *args: Any, **kwargs: Any) -> Any:
        """Counts, edges and bars."""
        return Plot(), Plot(), Plot()

    def hist2d(self, *args: Any, **kwargs: Any) -> Any:
        """Counts, edges of both axes and a picture."""
        return Plot(), Plot(), Plot(), Plot()


def _unknown() -> Exception:
    """Returns what is raised where a figure is taken for numbers; it is no mistake of the code that nothing was drawn."""
    called.append(absent("a figure", "definition"))
    return TypeError("a figure is not known")


def axes_of(nrows: Any = 1, ncols: Any = 1, *, squeeze: bool = True, **kwargs: Any) -> Any:
    """The axes of a figure with so many rows and columns, as `Figure.subplots` gives them."""
    import numpy

    counts = (nrows, ncols)
    if not all(isinstance(count, int) and not unknown_sizes.is_unknown(count) for count in counts) or not 0 < nrows * ncols < MOST_AXES:
        return Plot()
    axes = numpy.empty(counts, dtype=object)
    for place in numpy.ndindex(*counts):
        axes[place] = Plot()
    return axes if not squeeze else axes.item() if axes.size == 1 else axes.squeeze()


def pyplot(module: ModuleType) -> List[Replacement]:
    """The replacements in `matplotlib.pyplot`."""
    more = {
        "subplots": lambda *args, **kwargs: (Plot(), axes_of(*args, **kwargs)),
        "subplot_mosaic": lambda *args, **kwargs: (Plot(), Plot()),
        "hist": Plot().hist,
        "hist2d": Plot().hist2d,
    }
    functions = {name: value for name, value in module.__dict__.items() if isinstance(value, FunctionType) and not name.startswith("_")}
    own = [name for name, value in functions.items() if value.__module__ == module.__name__ and name not in REAL]
    return [(module, name, more.get(name, _drawn)) for name in own]


def seaborn(module: ModuleType) -> List[Replacement]:
    """The replacements in `seaborn`."""
    return [(module, name, _drawn) for name in DRAWN_BY_SEABORN.split() if name in module.__dict__]


def animation(module: ModuleType) -> List[Replacement]:
    """The replacements in `matplotlib.animation`."""
    return [(module, name, _drawn) for name in ("FuncAnimation", "ArtistAnimation") if name in module.__dict__]


def grids(module: ModuleType) -> List[Replacement]:
    """The replacements in `mpl_toolkits.axes_grid1`: a grid is the list of its axes."""

    def grid(figure: Any, rectangle: Any, nrows_ncols: Any = (1, 1), *args: Any, **kwargs: Any) -> Any:
        axes = axes_of(*nrows_ncols, squeeze=False)
        return axes if isinstance(axes, Plot) else list(axes.flat)

    return [(module, name, grid) for name in ("ImageGrid", "AxesGrid", "Grid") if name in module.__dict__]


def _drawn(*args: Any, **kwargs: Any) -> Any:
    return Plot()


IN_MODULE = {
    "matplotlib.pyplot": pyplot,
    "matplotlib.animation": animation,
    "mpl_toolkits.axes_grid1": grids,
    "seaborn": seaborn,
}

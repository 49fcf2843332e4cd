"""Values for parameters, as templates: by what is annotated, by what the code does with them, and by their names."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple

import torch

from ....stated.syntax_trees import names_in
from ..code.sources import is_torch, methods
from ..code.uses import Uses
from .annotated_kinds import NOTHING, AnnotatedKind, annotated_kind
from .configs import Configs, looks_like_config
from .document_scope import DocumentScope
from .eligible_classes import can_be_called_as, has_attributes_of, is_simple
from .name_priors import TEXTUAL, Prior, is_embedding_width, is_plural, prior_of, words
from .spaces import is_space, spaces

# Sizes for numbers of which nothing is known: each can be divided by 2, 4 and 8.
FREE = (24, 40, 56, 72, 88, 104, 120, 136, 152, 168)
ROWS = 1000  # of a matrix: words of a vocabulary, most often
RANKED = re.compile(r"(?:Conv|Pool|Norm)(?:Transpose)?([123])d")
OF_LAYERS = {"in_features", "out_features", "in_channels", "out_channels", "weight", "bias"}
OF_MODULES = {"forward", "parameters", "named_parameters", "children", "modules", "state_dict", "requires_grad_"}
BLOCKS = {"blocks", "layers", "module", "cell", "unit", "attention", "attn", "mlp", "stem"}
MODULES = {"backbone", "encoder", "decoder", "model", "net", "network", "extractor", "trunk", "teacher", "student"}  # by their names
FLAT = ("Linear", "LayerNorm", "Embedding", "LSTM", "GRU", "MultiheadAttention")
POWER_OF_TWO = 64  # the size of a picture, most often
NO_PRIOR = Prior("", None)  # of a name that says nothing
Build = Callable[[type, str, int], Optional[str]]


class ParameterValues:
    """Writes values for the parameters of one construction; the guessed sizes are collected in `sizes`."""

    def __init__(self, scope: DocumentScope, build: Build, is_whole: bool, cls: type) -> None:
        self.scope = scope
        self.build = build  # writes the construction of another class: (class, prefix of its sizes, depth)
        self.is_whole = is_whole  # a network rather than a part of one
        self.cls = cls
        self.sizes: Dict[str, int] = {}
        self.first_only = False  # the most credible value of each will do
        self.length: Optional[int] = None  # that lists of the construction have in common
        self.configs = Configs(self)
        self.beside: Dict[str, Uses] = {}  # the parameters of the construction, with what is done with them

    def size(self, name: str, number: int) -> str:
        """A place for a guessed number. One of the same name is the same number."""
        self.sizes.setdefault(name, number)
        return "⟨%s⟩" % name

    def values(self, name: str, asked: AnnotatedKind, uses: Uses, prefix: str = "", depth: int = 0) -> List[str]:
        """Templates for a parameter, the most credible one first; never empty."""
        for annotation, function in uses.annotations:
            if not asked.kind:
                asked = annotated_kind(annotation, function)
        kind = self._kind(name, asked, uses)
        prior = self._prior(name, uses, kind)
        label = prefix + name
        found: List[str] = []
        if is_space(asked.cls, name):
            of_pictures = any(RANKED.match(used) for used in _mentioned(self.cls))
            found = spaces(asked.cls, label, self.scope, self.size, of_pictures=of_pictures)
        found = found or self._records(kind, asked, uses, label, depth)
        if found:
            return found
        if kind == "choice" and asked.choices:
            return [repr(choice) for choice in asked.choices if choice is not None][:4]
        if kind == "enum" and asked.cls is not None:
            return self._enum(asked.cls)
        if kind == "text":
            return self._texts(name, uses, prior)
        if kind == "bool":
            return ["True", "False"] if prior.value is True else ["False", "True"]
        if kind == "list":
            return self._lists(name, asked, uses, prior, label, depth)
        if kind == "class":
            return self._classes(name, uses, asked)
        if kind == "module":
            return self._modules(name, asked, uses, label, depth)
        if kind == "called":
            return self._called(name, uses, asked)
        if kind in ("dict", "object", "of"):
            return self._objects(name, kind, asked, uses, label, depth)
        if kind == "tensor":
            return [self._tensor(uses, prior, label)]
        if kind in ("dtype", "device"):
            return ["torch.float32" if kind == "dtype" else "torch.device('cpu')" if uses.parts else "'cpu'"]
        return self._numbers(kind, uses, prior, label, asked)

    def _records(self, kind: str, asked: AnnotatedKind, uses: Uses, label: str, depth: int) -> List[str]:
        """Objects of the project's own classes that the code tells apart by their type: the columns of a table, say."""
        if kind not in ("", "object") or asked.kind or not uses.types or depth > 3:
            return []
        own = [cls for cls in dict.fromkeys(uses.types) if not issubclass(cls, torch.nn.Module) and is_simple(cls)]
        made = [self.build(cls, label + ".", depth + 1) for cls in own]
        return [text for text in made if text is not None]

    # --- what kind it is ---

    def _kind(self, name: str, asked: AnnotatedKind, uses: Uses) -> str:
        kind, used = asked.kind, uses.kind()
        if not kind and self._asked_for(uses) is not None:
            return "module"
        if kind == "of" and asked.cls is not None and issubclass(asked.cls, torch.nn.Module):
            kind = "module"
        lists = used == "list" and not uses.guarded
        if used in ("list", "text", "dict", "class", "object") and used in asked.also and (used != "list" or lists):
            return used
        if kind and not (kind in ("int", "float") and "list" in asked.also and lists):
            return _of_annotation(kind, asked, uses)
        return self._of_uses(name, uses)

    def _of_uses(self, name: str, uses: Uses) -> str:
        """The kind of a parameter without an annotation that says it: what the code does with it, and its name where that is open."""
        used, prior = uses.kind(), prior_of(name)
        if "called" in uses.kinds and used in ("", "number", "bool"):
            used = "called"
        if TEXTUAL.search(name.lower()) and used in ("", "list", "object", "number", "bool", "int"):
            return "text"
        runs = uses.kinds.get("called") or uses.kinds.get("module")
        is_module = runs or OF_MODULES & set(uses.parts) or not set(uses.parts) - OF_LAYERS
        if used == "object" and not looks_like_config(name) and is_module:
            return "module"
        if used == "called" and uses.kinds.get("module"):
            return "module"
        if used == "tensor" and uses.parts and set(uses.parts) <= {"device", "dtype"} and looks_like_config(name):
            return "object"
        if used in ("", "object", "text") and name.rpartition("_")[2] in ("device", "dtype"):
            return name.rpartition("_")[2]
        of_name = self._of_name(name, uses, prior) if used in ("", "number", "bool") else ""
        return of_name or used or (prior.kind if prior is not None else "")

    def _of_name(self, name: str, uses: Uses, prior: Optional[Prior]) -> str:
        """The kind that a name says, where the code leaves it open; "" where it says none."""
        used = uses.kind()
        if looks_like_config(name):
            return "object"
        if used == "bool" and prior is not None and prior.kind in ("int", "float", "text", "image"):
            return prior.kind
        if not used and prior is None and (self._named_class(name) or MODULES & set(words(name))):
            return "module"
        return "list" if not used and is_plural(name) and uses.item is not None else ""

    def _asked_for(self, uses: Uses) -> Optional[type]:
        """The module class that the code asks whether the value is of: `vit if isinstance(vit, ViT) else ViT(**vit)`."""
        for name in sorted(uses.guarded):
            found = self.scope.bound.get(name)
            if isinstance(found, type) and issubclass(found, torch.nn.Module) and found is not torch.nn.Module:
                return found
        return None

    def _prior(self, name: str, uses: Uses, kind: str) -> Prior:
        for own in [name] + uses.roles:
            prior = prior_of(own, kind in ("int", "float"))
            if prior is not None and prior.role == "image" and not self.is_whole:
                return Prior(prior.kind, 56, (56, 56, 56, 56), "image")
            if prior is not None and not (prior.kind == "text" and uses.kind() in ("int", "number")):
                if prior.role == "channels" and self.is_whole and own == name and set(words(name)) <= {"num", "channels"}:
                    roles = {known.role for known in map(prior_of, uses.roles) if known is not None}
                    if "in" in roles and "out" not in roles:
                        return prior_of("in_channels") or prior  # `UNet(n_channels, n_classes)`: those of the picture.
                if prior.role == "in" and prior.value == 3 and not self.is_whole:
                    return Prior("int", 32, prior.items, "in")
                if prior.role == "out" and "channels" in words(own) and not self.is_whole:
                    return Prior("int", 64, prior.items, "out")
                return prior
        return NO_PRIOR

    # --- each kind ---

    def _numbers(self, kind: str, uses: Uses, prior: Prior, label: str, asked: AnnotatedKind) -> List[str]:
        if kind == "float":
            value = prior.value if prior.kind in ("float", "int") else 1.0
            return [repr(float(value))]
        if kind in ("number", "") and prior.kind == "float":
            return [repr(prior.value)]
        if prior.kind == "shape" and kind != "int":
            return self._tuple_of(list(prior.value), label)
        if prior.kind in ("text", "bool") and kind in ("", prior.kind):
            return [repr(prior.value)]
        found = [self.size(label, self._whole_number(kind, uses, prior))]
        if asked.kind in ("", "list") and prior.kind == "image":
            found.append("(%s, %s)" % (found[0], found[0]))
        return found

    def _whole_number(self, kind: str, uses: Uses, prior: Prior) -> int:
        """The number that a name means, as far as the code takes it; else one that the code asks for, or one that no other size is."""
        numbers = [choice for choice in uses.choices if isinstance(choice, int) and not isinstance(choice, bool) and choice > 0]
        value: Optional[int] = prior.value if prior.kind in ("int", "image") else None
        if uses.is_power_of_two and (value is None or value & (value - 1)):
            value = POWER_OF_TWO
        if numbers and value not in numbers and (value is None or len(numbers) > 1):
            value = 2 if 2 in numbers else numbers[0]  # Of ranks, that of pictures.
        if value is None:
            value = next((free for free in FREE if free not in self.sizes.values()), 64) if kind != "int" or not prior.kind else 4
        return value

    def _texts(self, name: str, uses: Uses, prior: Prior) -> List[str]:
        choices = [choice for choice in uses.choices if isinstance(choice, str)]
        if choices:
            known = prior.value if prior.kind == "text" else None
            return [repr(choice) for choice in sorted(choices, key=lambda choice: choice != known)][:5]
        found = [repr(prior.value)] if prior.kind == "text" else []
        own = set(words(name))
        if not found and own & {"pool", "pooling", "reduction", "aggr", "agg", "aggregation"}:
            return ["'mean'"]
        return found or ["'zeros'" if "padding" in own else repr(next(iter(words(name)), name))]

    def _tensor(self, uses: Uses, prior: Prior, label: str) -> str:
        """A tensor of the rank that the code asks for. The last dim of a matrix is the width that the settings have for embeddings."""
        sizes = [self.size(label, prior.value if prior.kind == "int" else 10)]
        if uses.rank > 1:
            sizes = [self.size("%s[%d]" % (label, place), ROWS if place == 0 else 64) for place in range(uses.rank - 1)]
            sizes.append(self._embedding_width() or self.size("%s[%d]" % (label, uses.rank - 1), 64))
        return "torch.ones(%s)%s" % (", ".join(sizes), ".numpy()" if uses.is_array else "")

    def _embedding_width(self) -> str:
        """The place of the width of embeddings, where one parameter or setting is named like that; "" where none is."""
        for name, uses in self.beside.items():
            if is_embedding_width(name) and not uses.parts:
                return self.size(name, prior.value) if (prior := prior_of(name) or NO_PRIOR).kind == "int" else ""
            for part, its in uses.parts.items() if looks_like_config(name) else ():
                if is_embedding_width(part):
                    return next(iter(re.findall("^⟨[^⟩]*⟩$", self.configs.part(part, its, 1))), "")
        return ""

    def _enum(self, cls: type) -> List[str]:
        text = self.scope.expression(cls)
        members = list(cls)  # type: ignore[call-overload]
        if text is None or not members:
            return [repr(getattr(member, "value", None)) for member in members[:3]] or ["None"]
        return ["%s.%s" % (text, member.name) for member in members[:4]]

    def _tuple_of(self, numbers: List[int], label: str) -> List[str]:
        return ["(%s)" % ", ".join(self.size("%s[%d]" % (label, place), number) for place, number in enumerate(numbers))]

    def _lists(self, name: str, asked: AnnotatedKind, uses: Uses, prior: Prior, label: str, depth: int) -> List[str]:
        if asked.is_tuple and asked.length == 1 and (prior.kind == "shape" or prior.role == "in"):
            asked = replace(asked, length=0, items=())  # Many write Tuple[int] for a tuple of integers.
        if prior.kind == "shape" and not uses.exactly and not asked.length and uses.least <= 3:
            return self._tuple_of(list(prior.value), label)
        length = asked.length or uses.exactly or 0
        if asked.is_tuple and prior.role == "in" and not length and self.is_whole:
            return self._tuple_of([3, 32, 32], label)
        image = prior.kind in ("image", "shape")
        texts = self._items_of(name, length or self._length(name, uses, image), asked, uses, prior, label, depth)
        is_tuple = asked.is_tuple or image or ("tuple" in uses.guarded and "list" not in uses.guarded)
        opening, closing = ("(", ",)" if len(texts) == 1 else ")") if is_tuple else ("[", "]")
        found = [opening + ", ".join(texts) + closing]
        if asked.kind in ("", "list") and not uses.exactly and uses.least <= 1 and len(texts) > 2:
            found.append(opening + ", ".join(texts[:2]) + closing)
        return found

    def _length(self, name: str, uses: Uses, image: bool) -> int:
        """The length of a list that nothing says the length of: all such lists of a class have the same."""
        if uses.least > 1 or image or "[" in name:  # What lies in a list is one of each dim, of pictures.
            return max(uses.least, 2)
        length = self.length or max(uses.least, 4 if name in ("depths", "layers", "num_blocks", "blocks") else 3)
        self.length = self.length or length
        return length

    def _items_of(self, name: str, length: int, asked: AnnotatedKind, uses: Uses, prior: Prior, label: str, depth: int) -> List[str]:
        """Returns the texts of the items in a list of `length` items."""
        inner, item = asked.item or NOTHING, uses.item or Uses()
        kind, owner = inner.kind or item.kind(), label[: -len(name)]
        if asked.items and len({part.kind for part in asked.items}) > 1:
            return [self.values("%s[%d]" % (name, place), part, Uses(), owner, depth)[0] for place, part in enumerate(asked.items)]
        if kind in ("", "int", "number", "bool") or (kind == "float" and prior.kind == "int"):
            numbers = self._items(prior, length, item)
            if numbers is None:
                return [repr(prior.value) if prior.kind else "0.1"] * length
            if kind == "float":
                return [repr(float(number)) for number in numbers]
            return [self.size("%s[%d]" % (label, place), number) for place, number in enumerate(numbers)]
        single = name[:-1] if name.endswith("s") else name
        texts = []
        for place in range(min(length, 3) if kind in ("list", "module") and not asked.length else length):
            items = self.values("%s[%d]" % (single, place), inner, item, owner, depth + 1)
            # Those that are told apart by their type are one of each; what has a name has one of its own.
            text = items[place % len(items)] if item.types else items[0]
            texts.append(re.sub(r"\bname='(\w+)'", "name='\\1_%d'" % place, text) if place else text)
        return texts

    def _items(self, prior: Prior, length: int, item: Uses) -> Optional[List[int]]:
        """The numbers of a list; None where they are no sizes."""
        prior = prior if prior.kind else next((found for found in map(prior_of, item.roles) if found is not None), NO_PRIOR)
        if not prior.kind:
            return [8 * (place + 2) for place in range(length)]
        if prior.role == "mask":
            return [place % 2 for place in range(length + length % 2)]
        if prior.kind not in ("int", "image"):
            return None
        items = [number for number in prior.items if isinstance(number, int)]
        return (items + [items[-1]] * length)[:length]

    def _classes(self, name: str, uses: Uses, asked: AnnotatedKind) -> List[str]:
        own = set(words(name))
        plain = self._plain_layers(own, uses)
        if plain:
            return plain
        fitting = self._fitting(uses, asked)
        having = [(text, cls) for text, cls in fitting if all(hasattr(cls, part) or part in uses.optional for part in uses.parts)]
        named = self.scope.named_like(name, iter(having or fitting))
        if named:
            return [text for text, _ in named[:4]]
        for word, layer in (("conv", "Conv"), ("pool", "MaxPool")):
            if word in own:
                return self._by_rank(layer, "Linear")
        if own & {"linear", "fc"}:
            return [self.scope.layer("Linear")]
        text = self.scope.expression(asked.cls) if asked.cls is not None and asked.cls is not torch.nn.Module else None
        if text is not None:
            return [text]
        texts = [text for text, _ in having or fitting]
        if own & BLOCKS and texts:
            return ([text for text in texts if "Block" in text or "Layer" in text] or texts)[:3] + [self.scope.layer("Identity")]
        return [self.scope.layer("Identity")] + [text for text, _ in having[:2]]

    def _fitting(self, uses: Uses, asked: AnnotatedKind) -> List[Tuple[str, type]]:
        """The module classes that can be called as the code does; of these those that the annotation means, if there are any."""
        fitting = [(text, cls) for text, cls in self.scope.modules() if not issubclass(self.cls, cls) and can_be_called_as(cls, uses)]
        return [(text, cls) for text, cls in fitting if asked.cls is not None and issubclass(cls, asked.cls)] or fitting

    def _plain_layers(self, own: Set[str], uses: Uses) -> List[str]:
        """The layers of torch that the words of a name mean whatever classes the file has; [] for none."""
        if "norm" in own or "bn" in own:
            return self._by_rank("BatchNorm", "LayerNorm") + [self.scope.layer("Identity")]
        for meant, layer in ({"activation", "relu", "nonlinear", "acti"}, "ReLU"), ({"dropout"}, "Dropout"):
            if own & meant:
                return [self.scope.layer(layer)]
        two = uses.calls and all(count == 2 and not keywords for count, keywords in uses.calls)
        # A function that makes a network of what comes in and what goes out.
        return [self.scope.layer("Linear")] if own & {"fn", "create", "factory", "builder"} and two else []

    def _by_rank(self, layer: str, otherwise: str) -> List[str]:
        """`BatchNorm2d`, by the rank of the layers that the class has."""
        text = " ".join(_mentioned(self.cls))
        every = " ".join(names_in(self.scope.tree))
        rank = RANKED.search(text) or RANKED.search(every)
        flat = rank is None and any(word in text or word in every for word in FLAT)
        return [self.scope.layer(otherwise if flat else "%s%sd" % (layer, rank[1] if rank else "2"))]

    def _named_class(self, name: str) -> bool:
        return any(cls is not self.cls for _, cls in self.scope.named_like(name, self.scope.modules()))

    def _modules(self, name: str, asked: AnnotatedKind, uses: Uses, label: str, depth: int) -> List[str]:
        meant = asked.cls if asked.cls is not torch.nn.Module else None
        read = {part: its for part, its in uses.parts.items() if part not in uses.optional and not hasattr(torch.nn.Identity(), part)}
        fits = self._modules_meant(name, meant, uses)
        if read:
            having = [(text, cls) for text, cls in (fits or self.scope.modules()) if cls is not self.cls and has_attributes_of(cls, uses)]
            fits = having or fits
        found = self._built(meant, label, depth) if is_torch(meant) else []
        for _, cls in fits if depth < 3 else ():
            if cls is not self.cls and len(found) < (1 if self.first_only else 2):
                found += self._built(cls, label, depth)
        if "activation" in words(name):
            found.append(self.scope.layer("ReLU") + "()")
        if uses.kind() == "list" and not found:
            return ["[%s]" % ", ".join([self.scope.layer("Identity") + "()"] * max(uses.least, 2))]
        if read and depth < 3:
            values = {part: self.configs.part(part, its, depth + 1) for part, its in read.items()}
            return [*found, layer_with(self.scope.layer("Identity"), values)]
        return found + [self.scope.layer("Identity") + "()"]

    def _modules_meant(self, name: str, meant: Optional[type], uses: Uses) -> Sequence[Tuple[str, type]]:
        """The module classes of the kind that the code asks for, or else the annotation; those that are called like the parameter."""
        guarded = self._asked_for(uses)
        wanted = guarded if guarded is not None else meant
        if wanted is None:
            return self.scope.named_like(name, self.scope.modules())
        return [(text, cls) for text, cls in self.scope.modules() if issubclass(cls, wanted)]

    def _built(self, cls: Optional[type], label: str, depth: int) -> List[str]:
        """An object of a class, as a text; [] where none can be built."""
        text = self.build(cls, label + ".", depth + 1) if cls is not None else None
        return [text] if text is not None else []

    def _called(self, name: str, uses: Uses, asked: AnnotatedKind) -> List[str]:
        own = set(words(name))
        if own & {"activation", "nonlinear", "relu"} or name.startswith("act"):
            return [self.scope.layer("ReLU") + "()"]
        if own & {"init", "initializer"}:
            return ["torch.nn.init.zeros_"]
        named = self._modules(name, NOTHING, uses, name, 1) if self._named_class(name) else []
        return named[:1] + [self.scope.layer("Identity") + "()"]

    def _objects(self, name: str, kind: str, asked: AnnotatedKind, uses: Uses, label: str, depth: int) -> List[str]:
        found = self._built(asked.cls, label, depth) if depth < 4 else []
        if found and self.first_only:
            return found
        return found + self.configs.written(name, kind, uses, label, depth)


def layer_with(identity: str, values: Mapping[str, str]) -> str:
    """A template of a layer that changes nothing, with attributes that the code asks it for: `backbone.num_features`."""
    return 'type("Backbone", (%s,), {%s})()' % (identity, ", ".join("%r: %s" % item for item in values.items()))


def _of_annotation(kind: str, asked: AnnotatedKind, uses: Uses) -> str:
    """The kind that an annotation says, where the code does not use the value as another that the annotation may mean."""
    used = uses.kind()
    if used == "class" and kind in ("called", "module", "text"):
        return "class"
    if kind == "called" and asked.cls is not None and issubclass(asked.cls, torch.nn.Module):
        return "class"
    return "object" if kind == "dict" and used == "object" and not uses.kinds.get("dict") else kind


def _mentioned(cls: type) -> List[str]:
    """The names in the text of a class's methods."""
    return [name for _, node in methods(cls) for name in names_in(node)]

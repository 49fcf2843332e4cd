from shapelens.tracing import Example as Example
from shapelens.tracing import Finding as Finding
from shapelens.tracing import Place as Place
from shapelens.tracing import Seen as Seen
from shapelens.tracing import Trace as Trace
from shapelens.tracing import TracingError as TracingError
from shapelens.tracing import trace as trace

__version__: str

"""Queries of Prometheus with the variables of Grafana for spans of time."""

from collections.abc import Iterable


def rate(metric: str, *by: str) -> str:
    """Events a second, over all processes."""
    return _sum(f"rate({metric}[$__rate_interval])", by)


def total(metric: str, *by: str, span: str = "$__range") -> str:
    """Events in the time that is shown, or in `span`; `increase` alone misses the first of a series."""
    began = f"{metric} offset {span}"
    rise = f"(increase({metric}[{span}]) and {began}) or (last_over_time({metric}[{span}]) unless {began})"
    return _sum(rise, by)


def quantile(share: float, metric: str, *by: str) -> str:
    """The value of a histogram below which `share` of its observations lie."""
    return f"histogram_quantile({share}, {_sum(f'rate({metric}_bucket[$__rate_interval])', ('le', *by))})"


def mean(metric: str) -> str:
    """The mean of a histogram's observations."""
    return f"{rate(f'{metric}_sum')} / {rate(f'{metric}_count')}"


def ratio(part: str, whole: str) -> str:
    """A share; nothing where there is no whole."""
    return f"{part} / ({whole} > 0)"


def share_of_each(parts: str, whole: str) -> str:
    """Each of `parts` as a share of one `whole`; nothing where there is no whole."""
    return f"{parts} / on () group_left () ({whole} > 0)"


def or_zero(expr: str) -> str:
    """A number that is 0, and not missing, where there is no series yet."""
    return f"({expr} or vector(0))"


def each_of(label: str, values: Iterable[str], expr: str, missing: int = 0) -> str:
    """`expr` for each of a fixed list of values of a label; one of which all series have vanished is `missing`."""
    made = (f'label_replace(vector({missing}), "{label}", "{value}", "", "")' for value in values)
    return f"({' or '.join((expr, *made))})"


def _sum(expr: str, by: tuple[str, ...]) -> str:
    return f"sum by ({', '.join(by)}) ({expr})" if by else f"sum({expr})"

"""Queries of Prometheus with the variables of Grafana for spans of time."""


def rate(metric: str, *by: str) -> str:
    """Events a second, over all processes."""
    return _sum(f"rate({metric}[$__rate_interval])", by)


def total(metric: str, *by: str) -> str:
    """Events in the time that is shown."""
    return _sum(f"increase({metric}[$__range])", by)


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


def _sum(expr: str, by: tuple[str, ...]) -> str:
    return f"sum by ({', '.join(by)}) ({expr})" if by else f"sum({expr})"

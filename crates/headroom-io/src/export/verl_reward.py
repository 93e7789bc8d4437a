"""Scores a completion, the better the higher: put your own reward here."""


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **others):
    return float(len(set(solution_str.split())))

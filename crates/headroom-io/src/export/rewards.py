"""Scores completions, the better the higher: put your own reward here."""


def reward(prompts, completions, **columns):
    # In a conversation a completion is a list of messages; `columns` are the data's others.
    texts = [text if isinstance(text, str) else text[-1]["content"] for text in completions]
    return [float(len(set(text.split()))) for text in texts]

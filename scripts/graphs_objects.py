"""Detectors: the objects of all pictures of a batch as one list, so that their operations do not depend on the batch.

The libraries' losses go through the pictures one by one, over tensors of a few boxes. Here all boxes of a batch are matched and compared at
once: as much memory, in one tensor in place of one for each picture, and a graph that holds for every batch."""
import importlib

import torch

# Losses of transformers that match boxes.
LOSSES = ("loss_for_object_detection", "loss_rt_detr", "loss_deformable_detr", "loss_d_fine", "loss_grounding_dino", "loss_lw_detr")
# Modules with denoising queries made of the labels.
DENOISING = ("rt_detr.modeling_rt_detr", "rt_detr_v2.modeling_rt_detr_v2", "d_fine.modeling_d_fine")


def scenes(seen, objects):
    """Pictures with so many objects each."""

    def batch(b, s, device):
        count = b * objects
        labels = dict(class_labels=torch.zeros(count, dtype=torch.long, device=device), boxes=torch.full((count, 4), 0.4, device=device))
        return dict(seen(b, s, device), labels=[labels])

    return batch


def matched(costs):
    """Every box with a query, in order."""
    queries, boxes = costs.shape[-2:]
    boxes = torch.arange(boxes)
    return boxes % queries, boxes


def denoising(objects):
    """Denoising queries for all pictures at once: twice each box, in as many groups as a hundred queries are."""

    def group(targets, num_classes, num_queries, class_embed, num_denoising_queries=100, label_noise_ratio=0.5, box_noise_scale=1.0):
        labels, boxes = targets[0]["class_labels"], targets[0]["boxes"]
        groups = max(num_denoising_queries // objects, 1)
        made = 2 * objects * groups
        classes = labels.view(-1, objects).to(torch.int32).tile(1, 2 * groups)
        queries = boxes.view(-1, objects, 4).tile(1, 2 * groups, 1)
        queries = torch.logit(queries.clip(1e-5, 1 - 1e-5))
        total = made + num_queries
        mask = torch.full([total, total], 0, dtype=torch.float, device=labels.device)
        mask[made:, :made] = -torch.inf
        for i in range(groups):
            start, end = 2 * objects * i, 2 * objects * (i + 1)
            mask[start:end, :start] = -torch.inf
            mask[start:end, end:made] = -torch.inf
        positive = torch.arange(len(labels) * groups, device=labels.device) % made
        meta = dict(dn_positive_idx=[positive], dn_num_group=groups, dn_num_split=[made, num_queries])
        return class_embed(classes), queries, mask, meta

    return group


def together(objects):
    """Replaces what goes through the pictures one by one in the classes of transformers."""
    for name in LOSSES:
        module = importlib.import_module(f"transformers.loss.{name}")
        if hasattr(module, "linear_sum_assignment"):
            module.linear_sum_assignment = matched
    for name in DENOISING:
        module = importlib.import_module(f"transformers.models.{name}")
        if hasattr(module, "get_contrastive_denoising_training_group"):
            module.get_contrastive_denoising_training_group = denoising(objects)

"""Lightning's loop around the model and the data of model.py: python cli.py fit --config lightning.yaml"""

import json

import lightning.pytorch as pl
import torch
import yaml
from lightning.pytorch.cli import LightningCLI

import model
import train


class Model(pl.LightningModule):
    """The model that train.yaml describes, and its optimizer."""

    def __init__(self, config: str = "train.yaml"):
        super().__init__()
        with open(config, encoding="utf-8") as file:
            self.cfg = yaml.safe_load(file)
        self.model = model.build(self.cfg, train.device())

    def training_step(self, batch, index):
        loss, _ = model.forward(self.cfg, self.model, batch)
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        trained = [weight for weight in self.parameters() if weight.requires_grad]
        return train.OPTIMIZERS[self.cfg["optimizer"]](trained, self.cfg["learning_rate"])

    def on_train_end(self):
        loss = self.trainer.callback_metrics["loss"].item()
        report = {"steps": self.trainer.global_step, "loss": round(loss, 4)}
        if torch.cuda.is_available():
            report["max_memory_allocated"] = torch.cuda.max_memory_allocated()
            report["max_memory_reserved"] = torch.cuda.max_memory_reserved()
            report["predicted_allocated"] = self.cfg["predicted_allocated"]
        if self.global_rank == 0:
            print(json.dumps(report), flush=True)


class Data(pl.LightningDataModule):
    """Micro-batches without end, other ones for each process."""

    def __init__(self, config: str = "train.yaml"):
        super().__init__()
        with open(config, encoding="utf-8") as file:
            self.cfg = yaml.safe_load(file)

    def train_dataloader(self):
        cfg = self.trainer.lightning_module.cfg
        return train.loader(cfg, self.trainer.global_rank, self.trainer.world_size)


if __name__ == "__main__":
    LightningCLI(Model, Data, save_config_kwargs={"overwrite": True})

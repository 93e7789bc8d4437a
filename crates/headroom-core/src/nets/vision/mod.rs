//! Image classifiers of torchvision and timm.

mod beit;
mod classifier;
mod conv_layer;
mod convnext;
mod efficientnet;
mod eva;
mod inverted;
mod layers;
mod maxvit;
mod mobilenet;
mod mobilenet_v2;
mod mobilevit;
mod regnet;
pub(crate) mod resnet;
mod segformer;
mod tiny_vit;
mod transformers;
mod vgg;
mod vit;

#[cfg(test)]
mod tests;

use vit::VitConfig;

pub use layers::index_name;
pub use tiny_vit::TinyVit;

use super::Build;
use classifier::{ImageModel, classifier};

/// The architectures by library and name.
pub(super) const FAMILIES: &[(&str, Build)] = &[
    ("resnet", resnet::from_sizes),
    ("convnext", convnext::from_sizes),
    ("convnext_hf", |s| transformers::convnext(s, false)),
    ("convnextv2", |s| transformers::convnext(s, true)),
    ("mobilenet_v2_hf", |s| Ok(mobilenet_v2::build(s))),
    ("mobilevit", mobilevit::build),
    ("maxvit", maxvit::build),
    ("regnet", regnet::build),
    ("segformer", segformer::build),
    ("resnet_hf", transformers::resnet),
    ("vgg", vgg::from_sizes),
    ("beit", beit::from_sizes),
    ("eva", eva::from_sizes),
    ("efficientnet", |s| {
        inverted::from_sizes(s, inverted::Style::EfficientNet)
    }),
    ("mobilenet", |s| {
        inverted::from_sizes(s, inverted::Style::MobileNet)
    }),
    ("tv:resnet18", |s| resnet::build(s, resnet::R18)),
    ("tv:resnet34", |s| resnet::build(s, resnet::R34)),
    ("tv:resnet50", |s| resnet::build(s, resnet::R50)),
    ("tv:resnet101", |s| resnet::build(s, resnet::R101)),
    ("tv:resnet152", |s| resnet::build(s, resnet::R152)),
    ("tv:wide_resnet50_2", |s| {
        resnet::build(s, resnet::R50.wide(128))
    }),
    ("tv:wide_resnet101_2", |s| {
        resnet::build(s, resnet::R101.wide(128))
    }),
    ("tv:resnext50_32x4d", |s| {
        resnet::build(s, resnet::R50.wide(4).grouped(32))
    }),
    ("tv:resnext101_32x8d", |s| {
        resnet::build(s, resnet::R101.wide(8).grouped(32))
    }),
    ("timm:resnet18", |s| resnet::build(s, resnet::R18)),
    ("timm:resnet34", |s| resnet::build(s, resnet::R34)),
    ("timm:resnet50", |s| resnet::build(s, resnet::R50)),
    ("timm:resnet101", |s| resnet::build(s, resnet::R101)),
    ("timm:resnet152", |s| resnet::build(s, resnet::R152)),
    ("tv:convnext_tiny", |s| {
        convnext::torchvision(s, convnext::TINY, 0.1)
    }),
    ("tv:convnext_small", |s| {
        convnext::torchvision(s, convnext::SMALL, 0.4)
    }),
    ("tv:convnext_base", |s| {
        convnext::torchvision(s, convnext::BASE, 0.5)
    }),
    ("tv:convnext_large", |s| {
        convnext::torchvision(s, convnext::LARGE, 0.5)
    }),
    ("timm:convnext_tiny", |s| convnext::timm(s, convnext::TINY)),
    ("timm:convnext_small", |s| {
        convnext::timm(s, convnext::SMALL)
    }),
    ("timm:convnext_base", |s| convnext::timm(s, convnext::BASE)),
    ("timm:convnext_large", |s| {
        convnext::timm(s, convnext::LARGE)
    }),
    ("timm:convnext_xlarge", |s| {
        convnext::timm(s, convnext::XLARGE)
    }),
    ("tv:mobilenet_v3_large", |s| {
        mobilenet::build(s, mobilenet::LARGE)
    }),
    ("tv:mobilenet_v3_small", |s| {
        mobilenet::build(s, mobilenet::SMALL)
    }),
    ("tv:vgg11", |s| vgg::build(s, vgg::A, false)),
    ("tv:vgg13", |s| vgg::build(s, vgg::B, false)),
    ("tv:vgg16", |s| vgg::build(s, vgg::D, false)),
    ("tv:vgg19", |s| vgg::build(s, vgg::E, false)),
    ("tv:vgg11_bn", |s| vgg::build(s, vgg::A, true)),
    ("tv:vgg13_bn", |s| vgg::build(s, vgg::B, true)),
    ("tv:vgg16_bn", |s| vgg::build(s, vgg::D, true)),
    ("tv:vgg19_bn", |s| vgg::build(s, vgg::E, true)),
    ("tv:efficientnet_b0", |s| {
        efficientnet::build(s, 10, 10, 0.2)
    }),
    ("tv:efficientnet_b1", |s| {
        efficientnet::build(s, 10, 11, 0.2)
    }),
    ("tv:efficientnet_b2", |s| {
        efficientnet::build(s, 11, 12, 0.3)
    }),
    ("tv:efficientnet_b3", |s| {
        efficientnet::build(s, 12, 14, 0.3)
    }),
    ("tv:efficientnet_b4", |s| {
        efficientnet::build(s, 14, 18, 0.4)
    }),
    ("tv:efficientnet_b5", |s| {
        efficientnet::build(s, 16, 22, 0.4)
    }),
    ("tv:efficientnet_b6", |s| {
        efficientnet::build(s, 18, 26, 0.5)
    }),
    ("tv:efficientnet_b7", |s| {
        efficientnet::build(s, 20, 31, 0.5)
    }),
    ("tinyvit", tiny_vit::from_sizes),
    ("dinov2", vit::dinov2),
    ("tv:vit_b_16", |s| Ok(vit::torchvision(s, VitConfig::BASE))),
    ("tv:vit_b_32", |s| {
        Ok(vit::torchvision(s, VitConfig::BASE.patch(32)))
    }),
    ("tv:vit_l_16", |s| Ok(vit::torchvision(s, VitConfig::LARGE))),
    ("tv:vit_l_32", |s| {
        Ok(vit::torchvision(s, VitConfig::LARGE.patch(32)))
    }),
    ("tv:vit_h_14", |s| {
        Ok(vit::torchvision(s, VitConfig::HUGE.patch(14)))
    }),
    ("timm:vit_tiny_patch16_224", |s| {
        Ok(vit::timm(s, VitConfig::TINY))
    }),
    ("timm:vit_small_patch16_224", |s| {
        Ok(vit::timm(s, VitConfig::SMALL))
    }),
    ("timm:vit_base_patch16_224", |s| {
        Ok(vit::timm(s, VitConfig::BASE))
    }),
    ("timm:vit_base_patch32_224", |s| {
        Ok(vit::timm(s, VitConfig::BASE.patch(32)))
    }),
    ("timm:vit_large_patch16_224", |s| {
        Ok(vit::timm(s, VitConfig::LARGE))
    }),
    ("timm:vit_huge_patch14_224", |s| {
        Ok(vit::timm(s, VitConfig::HUGE.patch(14)))
    }),
];

//! Typical cloud instances of a GPU, without prices, which go out of date.

/// A GPU of the catalogue, and its instances; in brackets the number of GPUs in the smallest, if not one. Sources:
/// docs.aws.amazon.com/ec2/latest/instancetypes (accelerated computing), cloud.google.com/compute/docs/gpus,
/// learn.microsoft.com/azure/virtual-machines/sizes/overview (GPU accelerated).
const INSTANCES: &[(&str, &str)] = &[
    ("a10-24gb", "Azure NV36ads A10 v5"),
    ("a100-pcie-80gb", "Azure NC24ads A100 v4"),
    (
        "a100-sxm4-40gb",
        "Google a2-highgpu-1g, AWS p4d.24xlarge (8)",
    ),
    (
        "a100-sxm4-80gb",
        "Google a2-ultragpu-1g, AWS p4de.24xlarge (8)",
    ),
    ("a10g-24gb", "AWS g5.xlarge"),
    (
        "b200-180gb",
        "AWS p6-b200.48xlarge (8), Google a4-highgpu-8g (8)",
    ),
    ("h100-nvl-94gb", "Azure NC40ads H100 v5"),
    (
        "h100-sxm5-80gb",
        "AWS p5.48xlarge (8), Google a3-highgpu-1g, Azure ND96isr H100 v5 (8)",
    ),
    (
        "h200-sxm-141gb",
        "AWS p5en.48xlarge (8), Google a3-ultragpu-8g (8), Azure ND96isr H200 v5 (8)",
    ),
    ("l4-24gb", "Google g2-standard-4, AWS g6.xlarge"),
    ("l40s-48gb", "AWS g6e.xlarge"),
    ("mi300x-192gb", "Azure ND96isr MI300X v5 (8)"),
    ("p100-pcie-16gb", "Google n1 with P100"),
    (
        "t4-16gb",
        "AWS g4dn.xlarge, Google n1 with T4, Azure NC4as T4 v3",
    ),
    ("v100-sxm2-16gb", "AWS p3.2xlarge, Google n1 with V100"),
    ("v100-sxm2-32gb", "AWS p3dn.24xlarge (8)"),
];

/// Empty if there is no typical instance.
pub fn instances(gpu: &str) -> &'static str {
    let found = INSTANCES.iter().find(|(id, _)| *id == gpu);
    found.map_or("", |(_, instances)| instances)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instance_has_a_gpu_of_the_catalogue() {
        for (id, _) in INSTANCES {
            assert!(
                headroom_catalog::gpus().iter().any(|gpu| gpu.id == *id),
                "{id}"
            );
        }
        assert_eq!(instances("rtx-4090-24gb"), "");
    }
}

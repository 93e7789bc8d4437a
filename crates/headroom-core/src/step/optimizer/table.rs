//! The table of optimizers: a row for each, with the library's file that it was read from.

use super::bitsandbytes::Storage;
use super::lists::{chunked_list, list};
use super::rule::{ParamFilter, Rule, StateInit, Work};
use super::torchao::Format;
use super::{
    adafactor, adam, adam_mini, bitsandbytes, came, galore, grokadamw, lion, lomo, muon, soap,
    stable_adamw, torchao,
};
use headroom_scenario::Optimizer;

/// A loop over tensors like Adam's: twelve small functions for each.
const LOOP: Work = Work::each(20.0, 12);

/// The rule of an optimizer. Reads and writes were counted in its file, unless `LOOP` is given.
pub(crate) const fn rule(optimizer: Optimizer) -> Rule {
    match optimizer {
        // torch/optim/adam.py: `mul_`, `lerp_`, `mul_`, `addcmul_`, `sqrt`, `div_`, `add_` and `addcdiv_` over lists.
        Optimizer::AdamW => Rule {
            step: |step| adam::by_default(step.tape, step.params),
            ..Rule::two_states(Work::lists(20.0, 8))
        },
        // torch/optim/adam.py of torch 2.0.
        Optimizer::AdamWTwoLists => Rule {
            step: |step| adam::two_lists(step.tape, step.params),
            ..Rule::two_states(Work::lists(20.0, 8))
        },
        // torch/optim/adam.py: parameter, gradient and two states are read, and all but the gradient written.
        Optimizer::AdamWFused => Rule {
            states: adam::fused_states,
            ..Rule::stateless(Work::lists(7.0, 1))
        },
        // torch/optim/adam.py.
        Optimizer::AdamWLoop => Rule {
            step: |step| adam::for_loop(step.tape, step.params),
            ..Rule::two_states(LOOP)
        },
        // torch/optim/sgd.py.
        Optimizer::Sgd => Rule::stateless(Work::lists(3.0, 1)),
        Optimizer::SgdMomentum => Rule::one_state(Work::lists(7.0, 3)),
        // torch/optim/_adafactor.py.
        Optimizer::Adafactor => Rule {
            states: adafactor::factors,
            step: |step| adafactor::torch(step.tape, step.params, step.states),
            ..Rule::stateless(LOOP)
        },
        // transformers/optimization.py.
        Optimizer::AdafactorHf => Rule {
            state_init: StateInit::InLoop,
            states: adafactor::states_after_a_step,
            step: adafactor::transformers,
            ..Rule::stateless(LOOP)
        },
        // timm/optim/lion.py, whose `_multi_tensor_lion` is its default on CUDA too: `updates`.
        Optimizer::Lion | Optimizer::LionForeach => Rule {
            step: |step| chunked_list(step.tape, "_foreach_lerp", step.params),
            ..Rule::one_state(Work::lists(10.0, 5))
        },
        // lion_pytorch/lion_pytorch.py.
        Optimizer::LionLoop => Rule {
            step: |step| lion::for_loop(step.tape, step.params),
            ..Rule::one_state(LOOP)
        },
        // torch/optim/adagrad.py: `__init__` makes the sums; `_multi_tensor_adagrad` has `std` and `numerator`.
        Optimizer::Adagrad => Rule {
            state_init: StateInit::AtConstruction,
            step: |step| {
                drop((
                    list(step.tape, "_foreach_sqrt", step.params),
                    list(step.tape, "_foreach_mul", step.params),
                ));
            },
            ..Rule::one_state(Work::lists(14.0, 6))
        },
        // torch/optim/rmsprop.py, `_multi_tensor_rmsprop`: `avg`.
        Optimizer::RmsProp => Rule {
            step: |step| drop(list(step.tape, "_foreach_sqrt", step.params)),
            ..Rule::one_state(Work::lists(14.0, 6))
        },
        // torch/optim/_muon.py, which takes matrices only.
        Optimizer::Muon => Rule {
            params: ParamFilter::Matrices,
            step: |step| muon::single(step.tape, step.params),
            ..Rule::one_state(LOOP)
        },
        // torch/optim/_muon.py and torch/optim/adam.py.
        Optimizer::MuonAdamW => Rule {
            states: muon::states_with_adam,
            step: |step| muon::with_adam(step.tape, step.params),
            folds: false,
            ..Rule::stateless(LOOP)
        },
        // bitsandbytes/optim/optimizer.py.
        Optimizer::AdamW8bit => Rule {
            shared: bitsandbytes::tables,
            states: |tape, param| bitsandbytes::states(tape, param, Storage::EIGHT_BITS),
            ..Rule::stateless(Work::each(3.0, 1).with_bytes(4.0))
        },
        // bitsandbytes/optim/optimizer.py. States count as being on the host, so they go over the link and back in each step.
        Optimizer::PagedAdamW => Rule {
            states: |tape, param| bitsandbytes::states(tape, param, Storage::PAGED),
            host: |param| bitsandbytes::paged(param, Storage::PAGED, 2),
            ..Rule::stateless(Work::each(0.0, 1).with_bytes(16.0).on_host())
        },
        Optimizer::PagedAdamW8bit => Rule {
            shared: bitsandbytes::tables,
            states: |tape, param| bitsandbytes::states(tape, param, Storage::PAGED_EIGHT_BITS),
            host: |param| bitsandbytes::paged(param, Storage::PAGED_EIGHT_BITS, 2),
            ..Rule::stateless(Work::each(0.0, 1).with_bytes(4.0).on_host())
        },
        // torchao/optim/adam.py, compiled: one kernel for eight bits.
        Optimizer::AdamW8bitAo => Rule {
            states: |tape, param| torchao::states(tape, param, Format::EIGHT_BITS),
            ..Rule::stateless(Work::each(5.0, 2).with_bytes(4.0))
        },
        Optimizer::AdamW4bitAo => Rule {
            states: |tape, param| torchao::states(tape, param, Format::FOUR_BITS),
            step: |step| torchao::step(step.tape, step.params, Format::FOUR_BITS),
            ..Rule::stateless(Work::each(5.0, 2).with_bytes(4.0))
        },
        Optimizer::AdamWFp8Ao => Rule {
            states: |tape, param| torchao::states(tape, param, Format::FP8),
            step: |step| torchao::step_fp8(step.tape, step.params),
            ..Rule::stateless(Work::each(5.0, 2).with_bytes(4.0))
        },
        // torchao/optim/cpu_offload.py. On the host a core's vector units and memory take about as long as six more bytes
        // over the link.
        Optimizer::AdamWOffload => Rule {
            states: torchao::kept_on_device,
            host: torchao::offloaded,
            ..Rule::stateless(Work::each(2.0, 4).with_bytes(6.0).on_host())
        },
        Optimizer::AdamWOffloadGradients => Rule {
            folds: false,
            ..rule(Optimizer::AdamWOffload)
        },
        // adam_mini/adam_mini.py.
        Optimizer::AdamMini => Rule {
            states: adam_mini::states,
            step: |step| adam_mini::step(step.tape, step.params),
            folds: false,
            ..Rule::stateless(LOOP)
        },
        // schedulefree/adamw_schedulefree.py with foreach: `denom` of all parameters exists at once.
        Optimizer::ScheduleFree => Rule {
            step: |step| drop(list(step.tape, "_foreach_div", step.params)),
            ..Rule::two_states(Work::lists(20.0, 8))
        },
        // pytorch_optimizer/optimizer/adopt.py.
        Optimizer::Adopt => Rule {
            step: |step| {
                if !step.first {
                    adam::adopt(step.tape, step.params);
                }
            },
            ..Rule::two_states(Work::lists(20.0, 8))
        },
        // pytorch_optimizer/optimizer/came.py.
        // pytorch_optimizer/optimizer/lamb.py with foreach, as timm's: the updates of all parameters exist at once.
        Optimizer::Lamb => Rule {
            step: |step| drop(list(step.tape, "_foreach_sqrt", step.params)),
            ..Rule::two_states(Work::lists(24.0, 10))
        },
        Optimizer::Came => Rule {
            states: came::states,
            step: |step| came::step(step.tape, step.params),
            folds: false,
            ..Rule::stateless(LOOP)
        },
        // bitsandbytes/optim/ademamix.py.
        Optimizer::AdEmaMix => Rule {
            states: |tape, param| bitsandbytes::moments(tape, param, Storage::FULL, &[2, 1]),
            ..Rule::stateless(Work::each(3.0, 1).with_bytes(24.0))
        },
        Optimizer::AdEmaMix8bit => Rule {
            shared: bitsandbytes::tables,
            states: |tape, param| bitsandbytes::moments(tape, param, Storage::EIGHT_BITS, &[2, 1]),
            ..Rule::stateless(Work::each(3.0, 1).with_bytes(6.0))
        },
        // bitsandbytes/optim/lion.py.
        Optimizer::Lion8bit => Rule {
            shared: bitsandbytes::table,
            states: |tape, param| bitsandbytes::moments(tape, param, Storage::EIGHT_BITS, &[1]),
            ..Rule::stateless(Work::each(3.0, 1).with_bytes(2.0))
        },
        // bitsandbytes/optim/adamw.py.
        Optimizer::AdamWBnb => Rule {
            states: |tape, param| bitsandbytes::moments(tape, param, Storage::FULL, &[1, 1]),
            ..Rule::stateless(Work::each(3.0, 1).with_bytes(16.0))
        },
        // The same in pages, which go over the link and back in each step.
        Optimizer::PagedAdEmaMix => Rule {
            states: |tape, param| bitsandbytes::moments(tape, param, Storage::PAGED, &[2, 1]),
            host: |param| bitsandbytes::paged(param, Storage::PAGED, 3),
            ..Rule::stateless(Work::each(0.0, 1).with_bytes(24.0).on_host())
        },
        Optimizer::PagedAdEmaMix8bit => Rule {
            shared: bitsandbytes::tables,
            states: |tape, param| {
                bitsandbytes::moments(tape, param, Storage::PAGED_EIGHT_BITS, &[2, 1])
            },
            host: |param| bitsandbytes::paged(param, Storage::PAGED_EIGHT_BITS, 3),
            ..Rule::stateless(Work::each(0.0, 1).with_bytes(6.0).on_host())
        },
        // bitsandbytes/optim/lion.py, rmsprop.py and adagrad.py: one moment.
        Optimizer::LionBnb | Optimizer::RmsPropBnb | Optimizer::AdagradBnb => Rule {
            states: |tape, param| bitsandbytes::moments(tape, param, Storage::FULL, &[1]),
            ..Rule::stateless(Work::each(3.0, 1).with_bytes(8.0))
        },
        Optimizer::RmsProp8bit | Optimizer::Adagrad8bit => rule(Optimizer::Lion8bit),
        Optimizer::PagedLion => Rule {
            states: |tape, param| bitsandbytes::moments(tape, param, Storage::PAGED, &[1]),
            host: |param| bitsandbytes::paged(param, Storage::PAGED, 1),
            ..Rule::stateless(Work::each(0.0, 1).with_bytes(8.0).on_host())
        },
        Optimizer::PagedLion8bit => Rule {
            shared: bitsandbytes::table,
            states: |tape, param| {
                bitsandbytes::moments(tape, param, Storage::PAGED_EIGHT_BITS, &[1])
            },
            host: |param| bitsandbytes::paged(param, Storage::PAGED_EIGHT_BITS, 1),
            ..Rule::stateless(Work::each(0.0, 1).with_bytes(2.0).on_host())
        },
        // schedulefree/radam_schedulefree.py with foreach: `denom` of all parameters, from the sixth step on.
        Optimizer::ScheduleFreeRAdam => rule(Optimizer::ScheduleFree),
        // schedulefree/sgd_schedulefree.py with foreach: in place.
        Optimizer::ScheduleFreeSgd => Rule::one_state(Work::lists(11.0, 3)),
        // optimi/stableadamw.py: two kernels of Triton's for each parameter.
        Optimizer::StableAdamW => Rule {
            states: stable_adamw::states,
            ..Rule::stateless(Work::each(10.0, 2))
        },
        // grokadamw/grokadamw.py.
        Optimizer::GrokAdamW => Rule {
            step: |step| grokadamw::step(step.tape, step.params),
            host: grokadamw::on_host,
            ..Rule::stateless(Work::each(6.0, 12).on_host())
        },
        // lomo_optim/lomo.py and adalomo.py.
        Optimizer::Lomo => Rule {
            step: |step| lomo::lomo(step.tape, step.params),
            folds: false,
            ..Rule::stateless(LOOP)
        },
        Optimizer::AdaLomo => Rule {
            state_init: StateInit::AtConstruction,
            states: lomo::factors,
            step: |step| lomo::adalomo(step.tape, step.params),
            folds: false,
            ..Rule::stateless(LOOP)
        },
        // pytorch_optimizer/optimizer/soap.py; what cuSOLVER takes for eigenvectors is not counted.
        Optimizer::Soap => Rule {
            states: soap::states,
            step: soap::soap,
            folds: false,
            ..Rule::stateless(LOOP)
        },
        // pytorch_optimizer/optimizer/shampoo.py; the same for singular vectors.
        Optimizer::Shampoo => Rule {
            states: soap::preconditioners,
            step: |step| soap::shampoo(step.tape, step.params),
            folds: false,
            ..Rule::stateless(LOOP)
        },
        // apollo_torch/apollo.py.
        Optimizer::Apollo => Rule {
            state_init: StateInit::InLoop,
            states: |tape, param| galore::states(tape, param, galore::APOLLO),
            step: |step| galore::apollo(step, galore::APOLLO),
            folds: false,
            ..Rule::stateless(LOOP)
        },
        Optimizer::ApolloMini => Rule {
            state_init: StateInit::InLoop,
            states: |tape, param| galore::states(tape, param, galore::APOLLO_MINI),
            step: |step| galore::apollo(step, galore::APOLLO_MINI),
            folds: false,
            ..Rule::stateless(LOOP)
        },
        Optimizer::Apollo128 => Rule {
            state_init: StateInit::InLoop,
            states: |tape, param| galore::states(tape, param, galore::RANK),
            step: |step| galore::apollo(step, galore::RANK),
            folds: false,
            ..Rule::stateless(LOOP)
        },
        // galore_torch/adamw8bit.py.
        Optimizer::GaLore8bit => Rule {
            state_init: StateInit::InLoop,
            shared: bitsandbytes::tables,
            states: galore::states_8bit,
            step: galore::step_8bit,
            folds: false,
            ..Rule::stateless(LOOP)
        },
        // galore_torch/adafactor.py.
        Optimizer::GaLoreAdafactor => Rule {
            state_init: StateInit::InLoop,
            states: galore::factors,
            step: galore::adafactor,
            folds: false,
            ..Rule::stateless(LOOP)
        },
        // torchdistx/optimizers/anyprecision_optimizer.py.
        Optimizer::AnyPrecision => Rule {
            states: adam::fp32_states,
            step: |step| adam::any_precision(step.tape, step.params),
            ..Rule::stateless(LOOP)
        },
        // galore_torch/adamw.py.
        Optimizer::GaLore => Rule {
            state_init: StateInit::InLoop,
            states: galore::decomposed_states,
            step: galore::step,
            folds: false,
            ..Rule::stateless(LOOP)
        },
    }
}

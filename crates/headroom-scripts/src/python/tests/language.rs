use super::*;

#[test]
fn values_follow_pythons_rules() {
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let module = run(text, "", &[]);
        let found = module.names.iter().find(|(name, _)| name == "x");
        assert_eq!(
            found.map(|(_, value)| shown(value)).as_deref(),
            Some(expected),
            "{text}"
        );
    }
    check("x = 7 // 2 + -7 // 2", "-1");
    check("x = -7 % 3, 2 ** 10, 7 / 2, 1e-4", "[2, 1024, 3.5, 0.0001]");
    check("x = 1 < 2 < 3 and not 'a' in 'bcd'", "True");
    check("x = None or 'b' or 'c'", "'b'");
    check("x = [i * 2 for i in range(5) if i % 2]", "[2, 6]");
    check(
        "x = {k: v for k, v in zip('ab', [1, 2])}",
        "{'a': 1, 'b': 2}",
    );
    check(
        "a = dict(b=1, c=2)\nx = {**a, 'c': 3} | {'d': 4}",
        "{'b': 1, 'c': 3, 'd': 4}",
    );
    check(
        "n = 'm'\nx = f'{n!r}-{3.14159:.2f}-{7:03d}' rf'\\d{{}}'",
        "'m-3.14-007\\d{}'",
    );
    check("x = '%s/%d' % ('a', 3) + '{}{k}'.format(1, k=2)", "'a/312'");
    check("a, *b = [1, 2, 3]\nx = b", "[2, 3]");
    check("x = (lambda a, b=2: a + b)(1)", "3");
    check("x = 5 if 'a' == 'b' else 6", "6");
    check("x = 1\nx += 2; x *= 3", "9");
    check("if (n := len('abc')) > 2:\n    x = n", "3");
    check(
        "x = 'A-b'.lower().replace('-', '_').split('_')",
        "['a', 'b']",
    );
    check(
        "from pathlib import Path\nx = str(Path('out') / 'a' / 'b.txt')",
        "'out/a/b.txt'",
    );
    check("import os\nx = int(os.environ.get('WORLD_SIZE', 1))", "1");
    check("import math\nx = math.ceil(7 / 2)", "4");
    check(
        "x = [1, 2, 3][-1], 'abc'[1:], [1, 2, 3, 4][::2]",
        "[3, 'bc', [1, 3]]",
    );
    check(
        "x = []\nfor a in ['q', 'k']:\n    x.append(a + '_proj')",
        "['q_proj', 'k_proj']",
    );
    check(
        "match 'b':\n    case 'a': x = 1\n    case 'b' | 'c': x = 2\n    case _: x = 3",
        "2",
    );
    check("try:\n    x = 1\nexcept ImportError:\n    x = 2", "1");
    check("x = 1\nthis is not python (\nx = 2", "1");
    check("x: int = 0b101 + 0x_ff", "260");
    check(
        "x = round(2.5), round(0.125, 2), max(1, 3, 2), sum([1, 2])",
        "[2, 0.12, 3, 3]",
    );
    check("x = 'a' 'b' \\\n  'c'", "'abc'");
    check(
        "def f(*a, **k):\n    return len(a), k\nx = f(1, 2, c=3)",
        "[2, {'c': 3}]",
    );
}

#[test]
fn functions_and_classes_are_followed() {
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(calls(&run(text, "", &[])), expected, "{text}");
    }
    check(
        "from trl import SFTConfig as C\ndef make(lr, **more):\n    return C(learning_rate=lr, **more)\nmake(1e-5, bf16=True)",
        &["trl.SFTConfig(learning_rate=1e-5, bf16=True)"],
    );
    check(
        "import torch.optim as o\nclass A:\n    lr = 1\n    def __init__(self, k):\n        self.k = k\n    def go(self):\n        return o.AdamW(lr=self.lr, k=self.k)\nA(2).go()",
        &["torch.optim.AdamW(lr=1, k=2)"],
    );
    check(
        "from transformers import Trainer\nclass T(Trainer):\n    def __init__(self, beta, **k):\n        super().__init__(**k)\n        self.beta = beta\nt = T(0.1, model='m')\nt.train()",
        &["transformers.Trainer(model='m')", "#0.train()"],
    );
    check(
        "from peft import LoraConfig\ndef main():\n    LoraConfig(r=4)\nif __name__ == '__main__':\n    main()",
        &["peft.LoraConfig(r=4)"],
    );
    check(
        "from peft import LoraConfig\nfrom trl import SFTTrainer\ndef train(model, r=8):\n    SFTTrainer(model, peft_config=LoraConfig(r=r))",
        &[
            "peft.LoraConfig(r=8)",
            "trl.SFTTrainer(?train's argument model, peft_config=#0)",
        ],
    );
    check(
        "import a\nif a.unknown():\n    a.one(1)\nelse:\n    a.two(2)",
        &["a.unknown()", "maybe a.one(1)", "maybe a.two(2)"],
    );
    check(
        "from x import acc\nacc = acc()\nm, o = acc.prepare(acc.m(), acc.o())\nacc.go(m)",
        &[
            "x.acc()",
            "#0.m()",
            "#0.o()",
            "#0.prepare(#1, #2)",
            "#0.go(#1)",
        ],
    );
    check(
        "import torch.multiprocessing as mp\nfrom torch.optim import Adam\ndef work(rank, lr):\n    Adam(lr=lr, rank=rank)\nmp.spawn(work, args=(0.1,), nprocs=2)",
        &[
            "torch.multiprocessing.spawn(work, args=[0.1], nprocs=2)",
            "torch.optim.Adam(lr=0.1, rank=0)",
        ],
    );
}

#[test]
fn unknown_conditions_keep_the_earlier_value_and_say_so() {
    let text = "import a\nn = 1\nif a.b():\n    n = 2\n    m = 3\nelse:\n    k = 4\nif a.c():\n    raise ValueError\nlast = n";
    let module = run(text, "", &[]);
    let expected = ["k = 4", "last = 1", "m = 3", "n = 1"];
    assert_eq!(names(&module), expected);
    assert_eq!(module.assumed, ["n under the condition `a.b()`"]);
}

#[test]
fn attributes_of_objects_are_recorded_by_what_is_written() {
    let text = "from transformers import AutoModel\nm = AutoModel.from_pretrained('x')\nm.config.use_cache = False\nfor p in m.parameters():\n    p.requires_grad = False\ny = m.config.use_cache";
    let module = run(text, "", &[]);
    let expected = vec![
        ("m.config.use_cache".to_string(), Value::Bool(false)),
        ("p.requires_grad".to_string(), Value::Bool(false)),
    ];
    assert_eq!(module.assigned, expected);
    assert!(names(&module).contains(&"y = False".to_string()));
}

#[test]
fn names_of_all_linear_layers_are_recognized() {
    let function = "import torch\nfrom torch import nn\nm = torch.load_model()\ndef find(m):\n    c = nn.Linear\n    found = set()\n    for name, module in m.named_modules():\n        if isinstance(module, c):\n            parts = name.split('.')\n            found.add(parts[0] if len(parts) == 1 else parts[-1])\n    if 'lm_head' in found:\n        found.remove('lm_head')\n    return list(found)\n";
    let x = "x = find(m)";
    let y = "y = [n for n, l in m.named_modules() if isinstance(l, (nn.Linear, nn.Conv1d))]";
    let module = run(&format!("{function}{x}\n{y}"), "", &[]);
    let names = names(&module);
    assert!(
        names.contains(&"x = [?the names of all linear layers]".into()),
        "{names:?}"
    );
    assert!(
        names.contains(&"y = ?the names of all linear layers".into()),
        "{names:?}"
    );
}

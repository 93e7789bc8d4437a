//! Example networks.

/// Its title and its text.
pub const EXAMPLES: [(&str, &str); 4] = [
    (
        "Transformer",
        "sizes,heads=8,hidden=512,layers=6,vocab=32000;part,name=table;embedding,rows=vocab,width=hidden;\
         part,name=body,repeat=layers;attention,heads=heads,causal=on,norm=rms;mlp,width=4*hidden,norm=rms;\
         part,name=head;norm,kind=rms;linear,out=vocab,bias=off;loss,kind=cross-entropy",
    ),
    (
        "Recursion over shared weights",
        "sizes,bins=20000,heads=6,hidden=384,latent=7,peaks=100,steps=8;input,kind=values,shape=batch:peaks:2;\
         part,name=stem;linear,out=hidden;part,name=encoder,repeat=3;attention,heads=heads,dropout=0.1;\
         mlp,width=4*hidden,dropout=0.1;part,name=core,repeat=2,passes=steps*latent,gradient=2*latent,segments=pass;\
         attention,heads=heads;mlp,width=4*hidden;part,name=head;norm;linear,out=24;\
         tensor,name=spectrum,shape=batch:128:bins,count=2;\
         tensor,name=rendering,shape=batch:128:bins,lifetime=backward,count=3;loss,kind=cross-entropy",
    ),
    (
        "Convolutions",
        "sizes,width=64;input,kind=values,shape=batch:3:224:224;part,name=stem;conv,out=width,kernel=7,stride=2;\
         norm,kind=batch;activation;part,name=body,repeat=4;conv,out=width;norm,kind=batch;activation;\
         part,name=last;conv,out=1,kernel=1",
    ),
    (
        "Extra tensors",
        "sizes,edges=200000,nodes=20000,width=128;input,kind=values,shape=batch:nodes:width;\
         part,name=rounds,repeat=4;mlp,width=2*width;part,name=read;linear,out=1;\
         tensor,name=messages,shape=batch:edges:width,count=3,part=rounds;\
         tensor,name=index,shape=batch:2:edges,dtype=int64,lifetime=persistent;loss,kind=mse",
    ),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use headroom_scenario::network::{Network, problems};

    #[test]
    fn examples_run_and_are_written_as_the_page_writes_them() {
        for (name, text) in EXAMPLES {
            assert_eq!(problems(text, &BTreeMap::new(), 8, 512), [], "{name}");
            let network = Network::parse(text).map(|network| network.text());
            assert_eq!(network.as_deref(), Ok(text), "{name}");
        }
    }
}

package observe

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/report"
)

// ReadableDigest is the digest of everything that rules and templates can read.
func (st *State) ReadableDigest(status bool) canonical.Sum {
	var read any
	if status {
		read = st.Upstream.Object["status"]
	}
	digest := st.digest(read)
	if len(st.Pipeline.Inputs) == 0 {
		return digest
	}
	return canonical.Digest([]any{string(digest[:]), string(st.InputsDigest[:])})
}

// digest is the digest of what rules and templates can read: all but the bookkeeping of the API server, with that status; nil
// if they do not read it. Without a status subresource, each write of the status makes a generation, which then means nothing.
func (st *State) digest(status any) canonical.Sum {
	if status != nil {
		return digestWith(st.Pipeline.Settings, st.Upstream, status)
	}
	if st.digestOfUpstream != st.Upstream {
		st.digestOfUpstream, st.digestWithoutStatus = st.Upstream, digestWith(st.Pipeline.Settings, st.Upstream, nil)
	}
	return st.digestWithoutStatus
}

// digestWith makes what digest returns.
func digestWith(s *operator.Settings, upstream *unstructured.Unstructured, status any) canonical.Sum {
	readable := make(map[string]any, len(upstream.Object))
	for key, value := range upstream.Object {
		if key != "status" {
			readable[key] = value
		}
	}
	if status != nil {
		readable["status"] = status
	}
	if meta, ok := readable["metadata"].(map[string]any); ok {
		kept := make(map[string]any, len(meta))
		for key, value := range meta {
			if key != "resourceVersion" && key != "managedFields" && (key != "generation" || s.Upstream.HasStatus) {
				kept[key] = value
			}
		}
		readable["metadata"] = kept
	}
	return canonical.Digest(readable)
}

// OthersDigest is the digest of what can be read and this operator did not write: without its own part of the status and the
// downstreams that are inputs.
func (st *State) OthersDigest() canonical.Sum {
	var status any
	if st.Pipeline.ReadsStatus {
		status = report.OthersStatus(st.Pipeline.Settings, st.Upstream)
	}
	digest, own := st.digest(status), st.ownUIDs()
	refs := st.Memory.Inputs().Refs
	digests := make([]any, len(refs))
	for i, ref := range refs {
		digests[i] = st.inputs[i].digest(ref, func(o Input) bool { return !st.Pipeline.MayBeDownstream(i) || !own[o.GetUID()] })
	}
	return canonical.Digest([]any{string(digest[:]), digests})
}

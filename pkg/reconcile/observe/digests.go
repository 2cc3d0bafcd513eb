package observe

import (
	"maps"
	"slices"

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

// digest is the digest of what rules and templates can read: all but the bookkeeping of the API server, with that
// status; nil if they do not read it. Without a status subresource, each write of the status makes a generation, which
// then means nothing.
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

// OthersDigest is the digest of what can be read and this operator did not write: without its own part of the status
// and the downstreams that are inputs.
func (st *State) OthersDigest() canonical.Sum {
	return othersDigest(st, st.digest(othersStatus(st)))
}

// FinalizerCause is OthersDigest without our finalizer: else the change of it would be the cause of the next one.
func (st *State) FinalizerCause() canonical.Sum {
	upstream := &unstructured.Unstructured{Object: maps.Clone(st.Upstream.Object)}
	upstream.Object["metadata"] = maps.Clone(upstream.Object["metadata"].(map[string]any))
	var theirs []string // nil, not empty, if there are none: the field is absent then
	for _, name := range st.Upstream.GetFinalizers() {
		if !slices.Contains(st.Pipeline.Config.Conventions.Finalizers(), name) {
			theirs = append(theirs, name)
		}
	}
	upstream.SetFinalizers(theirs)
	return othersDigest(st, digestWith(st.Pipeline.Settings, upstream, othersStatus(st)))
}

// othersStatus is what others have in a status that rules or templates read; nil if they read none.
func othersStatus(st *State) any {
	if !st.Pipeline.ReadsStatus {
		return nil
	}
	return report.OthersStatus(st.Pipeline.Settings, st.Upstream)
}

func othersDigest(st *State, digest canonical.Sum) canonical.Sum {
	own, refs := st.ownUIDs(), st.Memory.Inputs().Refs
	digests := make([]any, len(refs))
	for i, ref := range refs {
		digests[i] = st.inputs[i].digest(ref, func(o Input) bool {
			return !st.Pipeline.MayBeDownstream(i) || !own[o.GetUID()]
		})
	}
	return canonical.Digest([]any{string(digest[:]), digests})
}

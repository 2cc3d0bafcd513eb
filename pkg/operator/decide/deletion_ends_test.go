package decide_test

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/decide"
)

// TestDeletionEnds: whatever comes after what, is kept, or has an owner reference, a deletion goes on until the upstream
// may go, and what is kept does not go with its Namespace. The downstreams are a Namespace, two objects in it, the second
// of a custom kind, and one elsewhere.
func TestDeletionEnds(t *testing.T) {
	places := []operator.Ref{{Name: "apps"}, {Namespace: "apps", Name: "inner"}, {Namespace: "apps", Name: "custom"}, {Namespace: "other", Name: "elsewhere"}}
	kinds := []string{"Namespace", "Service", "Widget", "Secret"}
	orders := [][][2]int{{}, {{1, 0}}, {{2, 0}}, {{3, 2}}, {{2, 3}}, {{2, 0}, {3, 2}}, {{2, 1}, {3, 0}}, {{0, 1}}, {{0, 3}, {2, 1}}, {{0, 2}}, {{0, 1}, {1, 2}, {2, 3}}}
	for n := range 16 * 16 * 3 * 2 * len(orders) {
		bits, rest := n%256, n/256
		cascade := []operator.Cascade{operator.CascadeConfig, operator.CascadeForeground, operator.CascadeOrphan}[rest%3]
		waits, order := rest/3%2 == 1, orders[rest/6]
		p := onePipeline(func(op *config.Operator) {
			d := op.Downstreams[0]
			op.Deletion.Wait, op.Downstreams = waits, nil
			for i, kind := range kinds {
				d.Name, d.APIVersion, d.Kind, d.DeletionPolicy = fmt.Sprint("d", i), "v1", kind, config.DeletionDelete
				if d.After = nil; kind == "Widget" {
					d.APIVersion = "example.com/v1"
				}
				if bits>>i&1 == 1 {
					d.DeletionPolicy = config.DeletionOrphan
				}
				for _, o := range order {
					if o[0] == i {
						d.After = append(slices.Clip(d.After), config.After{Name: fmt.Sprint("d", o[1]), Until: config.AfterCreated})
					}
				}
				op.Downstreams = append(op.Downstreams, d)
			}
		})
		in := deleted()
		in.Cascade, in.Leftovers = cascade, nil
		for i, at := range places {
			p.Downstreams[i].Kind.GVR = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: fmt.Sprint("kind", i)}
			live := ourLive()
			live.Namespace, live.Name, live.UID = at.Namespace, at.Name, types.UID(fmt.Sprint("live-", i))
			if bits>>(4+i)&1 == 0 {
				live.OwnerMark, live.MarkApplied, live.Owners = "apps/web/"+string(upstreamUID), true, nil
			}
			in.Leftovers = append(in.Leftovers, operator.Owned{Downstream: i, Live: live, Certain: true})
		}
		if why := endOfDeletion(p.Settings, in, slices.Contains(order, [2]int{0, 2}) || slices.Contains(order, [2]int{0, 1})); why != "" {
			t.Fatalf("%s: cascade %q, wait %t, order %v, kept %04b, with references %04b", why, cascade, waits, order, bits&15, bits>>4)
		}
	}
}

// endOfDeletion carries out what is decided until the upstream may go. It says what is wrong; empty for nothing. With
// before, the Namespace comes after what is in it, and so goes before that.
func endOfDeletion(s *operator.Settings, in operator.Input, before bool) string {
	released := map[int]bool{}
	for {
		d := decide.Deletion(s, in)
		left, acts := in.Leftovers, false
		in.Leftovers = nil
		removed := false
		for i, own := range left {
			switch d.Leftovers[i].Action {
			case operator.ActionRelease:
				released[own.Downstream], acts = true, true
			case operator.ActionDelete:
				acts, removed = true, removed || own.Downstream == 0
			default:
				in.Leftovers = append(in.Leftovers, own)
			}
		}
		ended := d.Finalizer == operator.FinalizerRemove
		if ended { // the garbage collector takes the rest
			removed = removed || slices.ContainsFunc(in.Leftovers, func(own operator.Owned) bool { return own.Downstream == 0 })
		}
		if removed {
			for _, i := range []int{1, 2} {
				if released[i] {
					return fmt.Sprintf("the Namespace goes with object %d, which is kept", i)
				}
			}
			if !ended && !before && slices.ContainsFunc(left, func(own operator.Owned) bool { return own.Downstream == 2 }) {
				return "the Namespace goes before the custom resource"
			}
			in.Leftovers = slices.DeleteFunc(in.Leftovers, func(own operator.Owned) bool { return own.Downstream == 1 })
		}
		if ended {
			return ""
		}
		if !acts {
			return fmt.Sprintf("nothing is done, and the upstream stays: %v", d.Leftovers[0].Message)
		}
	}
}

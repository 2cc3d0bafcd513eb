package decide

import (
	"slices"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/marks"
	"github.com/corollary-dev/corollary/pkg/status"
)

// HomeOf says whose object live was, which was seen in the watch of downstream i and of none before it: what the status
// records, what it says itself, else the first of its kind whose objects may be in that namespace.
func HomeOf(s *operator.Settings, i int, live *drift.Live, recorded []status.Recorded) (home int, certain bool) {
	gk := s.Downstreams[i].GVK().GroupKind()
	for _, r := range recorded {
		if r.UID != live.UID || r.Guessed {
			continue
		}
		for j, d := range s.Downstreams {
			if d.Name == r.Name {
				return j, true
			}
		}
	}
	if j := s.IndexOf(live.Downstream); j >= 0 && s.Downstreams[j].GVK().GroupKind() == gk {
		return j, true
	}
	for j, d := range s.Downstreams[i:] {
		if d.GVK().GroupKind() == gk && mayStandIn(s, d, live) {
			return i + j, false
		}
	}
	return i, false
}

// mayStandIn reports whether targetNamespaces allow an object where it is, by the upstream that its owner annotation
// names.
func mayStandIn(s *operator.Settings, d *operator.Downstream, live *drift.Live) bool {
	switch d.Config.TargetNamespaces.From {
	case config.NamespacesList:
		return slices.Contains(d.Config.TargetNamespaces.Names, live.Namespace)
	case config.NamespacesSame:
		own, _, ok := marks.ParseOwnerMark(live.OwnerMark)
		if s.UpstreamIsNamespace() {
			own.Namespace = own.Name
		}
		return !ok || live.MarkVoid || own.Namespace == live.Namespace
	}
	return true
}

func soleOfKind(s *operator.Settings, i int) bool {
	gk := s.Downstreams[i].GVK().GroupKind()
	for j, d := range s.Downstreams {
		if j != i && d.GVK().GroupKind() == gk {
			return false
		}
	}
	return true
}

// homesOf are the downstreams of which an object may be.
func homesOf(s *operator.Settings, own operator.Owned) (list []int) {
	gk := s.Downstreams[own.Downstream].GVK().GroupKind()
	for i, d := range s.Downstreams {
		if i == own.Downstream || !own.Certain && d.GVK().GroupKind() == gk && mayStandIn(s, d, own.Live) {
			list = append(list, i)
		}
	}
	return list
}

// keeps reports whether an object outlives its upstream: in doubt about whose it was, any downstream of its kind that
// says Orphan saves it.
func keeps(s *operator.Settings, own operator.Owned) bool {
	gk := s.Downstreams[own.Downstream].GVK().GroupKind()
	for j, d := range s.Downstreams {
		same := j == own.Downstream || (!own.Certain && d.GVK().GroupKind() == gk)
		if same && d.Config.DeletionPolicy == config.DeletionOrphan {
			return true
		}
	}
	return false
}

func inPlace(o operator.Outcome) bool {
	return o.State.IsApplied() || o.State == operator.StateContested && o.Live != nil
}

func referenced(live *drift.Live, in operator.Input) bool {
	return slices.ContainsFunc(live.Owners, func(ref drift.OwnerRef) bool { return ref.UID == in.Upstream.GetUID() })
}

// leftover is the outcome for an object at no target, before it is decided on.
func leftover(in operator.Input, own operator.Owned) operator.Outcome {
	o := operator.Outcome{Downstream: own.Downstream, Object: own.Downstream, Live: own.Live, UID: own.Live.UID,
		Target: operator.RefOf(own.Live), Guessed: !own.Certain}
	if in.Desired != nil {
		o.Object = in.Desired.First(own.Downstream)
	}
	return o
}

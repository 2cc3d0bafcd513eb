package decide

import (
	"slices"
	"strings"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/status"
)

// SiblingAt names the downstream for which the status records an object whose place another one asks for, which has its
// own object; empty if it may take that over. Generated values are those of their downstream: they do not change hands
// with a name. Neither does what the config has forgotten, if recorded has that, too. What a downstream leaves behind
// that wants no other object instead is taken over: it would be deleted, with all that it keeps, and made again.
func SiblingAt(
	s *operator.Settings, w *operator.Desired, downstream int, live *drift.Live, recorded []status.Recorded,
) string {
	d := s.Downstreams[downstream]
	if d.OwnsFields() {
		return ""
	}
	hasOther := func(r status.Recorded) bool {
		return r.Name == d.Name && r.IsCurrent() && r.UID != "" && r.UID != live.UID
	}
	for _, r := range recorded {
		if r.UID != live.UID || r.Name == d.Name || r.Guessed {
			continue
		}
		i := s.IndexOf(r.Name)
		isRenamed := i < 0 && (d.Several() || !slices.ContainsFunc(recorded, hasOther))
		if !isRenamed && (i < 0 || (keepsContent(d) || keepsContent(s.Downstreams[i])) && mayMove(s, w, i, recorded)) {
			return r.Name
		}
	}
	return ""
}

// mayMove reports whether downstream i may want another object in the place of one that it has: the one that it wants
// or, of several, one that the status does not record yet.
func mayMove(s *operator.Settings, w *operator.Desired, i int, recorded []status.Recorded) bool {
	d := s.Downstreams[i]
	return w.Unknown(i) || slices.ContainsFunc(w.Of(i), func(o operator.DesiredObject) bool {
		return o.Wanted && (!d.Several() || !operator.IsRecordedAt(recorded, d.Name, o.Target))
	})
}

// keepsContent reports whether objects of a downstream have what their template does not give: random values, what they
// had at first, or data and whatever the controllers of custom kinds keep.
func keepsContent(d *operator.Downstream) bool {
	return d.HasGenerated() || d.Config.UpdatePolicy == config.UpdateCreateOnly || KeepsData(d)
}

// KeepsData reports whether objects of a downstream have data: in volumes, or whatever a controller of others keeps for
// an object of its own kind.
func KeepsData(d *operator.Downstream) bool {
	gk := d.GVK().GroupKind()
	hasVolume := gk.Kind == "PersistentVolumeClaim" || gk.Kind == "StatefulSet" &&
		strings.Contains(d.Config.Template, "volumeClaimTemplates")
	return !d.OwnsFields() && (hasVolume || !kinds.IsBuiltin(gk))
}

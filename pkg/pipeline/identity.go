package pipeline

import (
	"slices"
	"sort"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Recorded reads the identifiers of downstreams that the upstream's status has; none where status is off. What is recorded
// of another kind than the config has now, from before somebody changed it, is left out: it would be looked for where it
// is not. Such an object stays, as what a config no longer names always does.
func (p *Pipeline) Recorded(upstream *unstructured.Unstructured) []status.Recorded {
	return slices.DeleteFunc(p.EverRecorded(upstream), func(r status.Recorded) bool {
		return !slices.ContainsFunc(p.Downstreams, func(d *Downstream) bool {
			return d.Name == r.Name && d.Config.Kind == r.Kind && d.GVK().Group == schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).Group
		})
	})
}

// EverRecorded is Recorded with what the config has forgotten.
func (p *Pipeline) EverRecorded(upstream *unstructured.Unstructured) []status.Recorded {
	if !p.StatusEnabled() || p.Config.Status.Downstreams == "" {
		return nil
	}
	list, ok := fieldpath.Get(upstream.Object, p.downstreamsPath)
	if !ok {
		return nil
	}
	return status.RecordedFrom(list)
}

// SiblingAt names the downstream for which the status records an object whose place another one asks for, which has its own object; empty
// if it may take that over. Generated values are those of their downstream: they do not change hands with a name. Neither does what the config
// has forgotten, if recorded has that, too. What a downstream leaves behind that wants no other object instead is taken over: it would be
// deleted, with all that it keeps, and made again.
func (p *Pipeline) SiblingAt(w *Desired, downstream int, live *drift.Live, recorded []status.Recorded) string {
	d := p.Downstreams[downstream]
	if d.OwnsFields() {
		return ""
	}
	hasOther := func(r status.Recorded) bool { return r.Name == d.Name && r.UID != "" && r.UID != live.UID }
	for _, r := range recorded {
		if r.UID != live.UID || r.Name == d.Name {
			continue
		}
		i := p.indexOf(r.Name)
		isRenamed := i < 0 && (d.Several() || !slices.ContainsFunc(recorded, hasOther))
		if !isRenamed && (i < 0 || (d.keepsContent() || p.Downstreams[i].keepsContent()) && p.mayMove(w, i, recorded)) {
			return r.Name
		}
	}
	return ""
}

// mayMove reports whether downstream i may want another object in the place of one that it has: the one that it wants or, of several, one
// that the status does not record yet.
func (p *Pipeline) mayMove(w *Desired, i int, recorded []status.Recorded) bool {
	d := p.Downstreams[i]
	return w.Unknown(i) || slices.ContainsFunc(w.of(i), func(o DesiredObject) bool {
		return o.Wanted && (!d.Several() || !isRecordedAt(recorded, d.Name, o.Target))
	})
}

// keepsContent reports whether objects of a downstream have what their template does not give: random values, what they had at first, or data
// and whatever the controllers of custom kinds keep.
func (d *Downstream) keepsContent() bool {
	return d.HasGenerated() || d.Config.UpdatePolicy == config.UpdateCreateOnly || d.KeepsData()
}

// RecordedBaseline is the projection that our last apply of live returned, as the upstream's status records it for that very
// object and document; nil if it does not. A status that is written like any other field of the upstream is not believed.
func (p *Pipeline) RecordedBaseline(r *status.Recorded, live *drift.Live) *drift.Sum {
	if r == nil || !p.TrustsStatus() || r.Hash == "" || r.UID != live.UID || r.Hash != live.Hash {
		return nil
	}
	sum, ok := drift.ParseSum(r.Baseline)
	if !ok {
		return nil
	}
	return &sum
}

// Marks say on an object that it is ours.
type Marks struct {
	// OwnerUID is the upstream's, in an owner reference.
	OwnerUID types.UID
	// Labels and Annotations are keys.
	Labels      []string
	Annotations []string
	// Managers are the field managers before the one that the config names now.
	Managers []string
}

// Marks are what is taken off an object of downstream i when it is released.
func (p *Pipeline) Marks(owner types.UID, i int) Marks {
	d := p.Downstreams[i]
	m := Marks{OwnerUID: owner}
	for _, e := range d.labels {
		m.Labels = append(m.Labels, e.key)
	}
	for _, e := range d.annotations {
		m.Annotations = append(m.Annotations, e.key)
	}
	if p.hashKey.Label != "" {
		m.Labels = append(m.Labels, p.hashKey.Label)
	} else {
		m.Annotations = append(m.Annotations, p.hashKey.Annotation)
	}
	if key := p.Config.Conventions.Owner.Annotation; key != "" {
		m.Annotations = append(m.Annotations, key)
	}
	if key := p.tokenKey(); key != "" {
		m.Annotations = append(m.Annotations, key)
	}
	if key := p.ShardLabel(); key != "" {
		m.Labels = append(m.Labels, key)
	}
	before := p.PreviousMarks(i)
	m.Labels, m.Annotations = append(m.Labels, before.Labels...), append(m.Annotations, before.Annotations...)
	m.Managers = before.Managers
	sort.Strings(m.Labels)
	sort.Strings(m.Annotations)
	return m
}

// MarkFields are the fields of an object that hold its owner annotation and its hash, as the API server writes their paths.
func (p *Pipeline) MarkFields() []string {
	fields := []string{".metadata.annotations." + p.Config.Conventions.Owner.Annotation}
	if p.hashKey.Label != "" {
		return append(fields, ".metadata.labels."+p.hashKey.Label)
	}
	return append(fields, ".metadata.annotations."+p.hashKey.Annotation)
}

// OwnConditions returns a status with our condition types alone, for an apply: what it holds becomes ours.
func (p *Pipeline) OwnConditions(want map[string]any) map[string]any {
	all, _ := want["conditions"].([]any)
	own := p.ownTypes()
	var ours []any
	for _, c := range all {
		condition, _ := c.(map[string]any)
		if t, _ := condition["type"].(string); slices.Contains(own, t) {
			ours = append(ours, c)
		}
	}
	out := make(map[string]any, len(want))
	for key, value := range want {
		out[key] = value
	}
	if len(all) > 0 {
		out["conditions"] = ours
	}
	return out
}

// KeepsData reports whether objects of a downstream have data: in volumes, or whatever a controller of others keeps for an object of its own kind.
func (d *Downstream) KeepsData() bool {
	gk := d.GVK().GroupKind()
	hasVolume := gk.Kind == "PersistentVolumeClaim" || gk.Kind == "StatefulSet" && strings.Contains(d.Config.Template, "volumeClaimTemplates")
	return !d.OwnsFields() && (hasVolume || !kinds.IsBuiltin(gk))
}

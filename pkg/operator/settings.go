package operator

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/canonical"
	"github.com/corollary-dev/corollary/pkg/config"
	"github.com/corollary-dev/corollary/pkg/drift"
	"github.com/corollary-dev/corollary/pkg/fieldpath"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/redact"
	"github.com/corollary-dev/corollary/pkg/status"
)

// Settings are what a config says, without its programs. They are immutable.
type Settings struct {
	// Name is metadata.name of the config.
	Name   string
	Config *config.Operator
	// OnlyDeletes: only upstreams that are being deleted are decided about, since the config has errors.
	OnlyDeletes bool
	// Upstream is the watched kind; GVR and Schema are empty where the kind was not known at compile time.
	Upstream kinds.Kind
	// Downstreams are in the config's order.
	Downstreams []*Downstream
	// UpstreamWords are all that is shown of an upstream that is a Secret itself; nil: all of it may be.
	UpstreamWords redact.Words
	// Storable is what the upstream's status can hold; nil if status is off.
	Storable *status.Storable
	// StoresBaseline is true if the kind's schema has room for a baseline in the list of downstreams.
	StoresBaseline bool
	// DownstreamsPath is status.downstreams; nil if the config has none.
	DownstreamsPath fieldpath.Path
	// StatusFields are the paths of status.fields, in the config's order.
	StatusFields []fieldpath.Path
	// Algorithm makes the hash of a document, and Hash is where objects have it.
	Algorithm canonical.Algorithm
	Hash      drift.Key
	// Previous are the names of conventions.previous, without those that the config uses now.
	Previous drift.Previous
}

// Downstream is what a config says of one downstream, without its programs.
type Downstream struct {
	Index  int
	Name   string
	Config *config.Downstream
	Kind   kinds.Kind
	// View is what the cache keeps of a live object.
	View drift.View
	// Selector is what the constant labels select: the server-side filter of the watch.
	Selector labels.Set
	// Words are the author's: of a document that can hold values of a Secret nothing else is shown. nil: all of it may be.
	Words redact.Words
	// HashPrefix begins the hash of its documents.
	HashPrefix string
	// Siblings are the downstreams that it reads.
	Siblings []int
	// Generated are its random values. View.Initial has their fields last.
	Generated []GeneratedField
	// ItemsVary is true if forEach.items reads more than the upstream.
	ItemsVary bool
	// NamesItems is true if the name of each of several objects is made of its item.
	NamesItems bool
}

// GeneratedField is a random value of a Secret, under a key of its data.
type GeneratedField struct {
	Key    string
	Length int
	// Characters are those that it is made of, each once.
	Characters string
}

// GVK returns the downstream's group, version and kind as the config names them.
func (d *Downstream) GVK() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(d.Config.APIVersion, d.Config.Kind)
}

// Several reports whether the downstream may have any number of objects (forEach), which differ by their places.
func (d *Downstream) Several() bool { return d.Config.ForEach != nil }

// OwnsFields reports whether its objects are those of others, of which only the rendered fields are ours.
func (d *Downstream) OwnsFields() bool { return d.Config.Ownership == config.OwnershipFields }

// Repairs reports whether drift is undone: by the policies it may also be reported, or left alone.
func (d *Downstream) Repairs() bool {
	return d.Config.UpdatePolicy != config.UpdateCreateOnly &&
		d.Config.Drift.Policy != config.DriftReport && d.Config.Drift.Policy != config.DriftIgnore
}

// HasGenerated reports whether objects of the downstream have generated values.
func (d *Downstream) HasGenerated() bool { return len(d.Generated) > 0 }

// Paused reports whether the upstream has the config's pause annotation with the value "true".
func (s *Settings) Paused(upstream *unstructured.Unstructured) bool {
	pause := s.Config.Conventions.Pause
	return pause != nil && upstream.GetAnnotations()[pause.Annotation] == "true"
}

// StatusEnabled reports whether the config lets us write the upstream's status.
func (s *Settings) StatusEnabled() bool {
	return s.Config.Status.Enabled == nil || *s.Config.Status.Enabled
}

// TrustsStatus reports whether what the upstream's status records of its downstreams is a witness. A status that is
// written like any other field is none: anyone who may create the upstream could claim any object by it.
func (s *Settings) TrustsStatus() bool {
	path := s.Config.Status.Downstreams
	return s.Upstream.HasStatus && s.StatusEnabled() && path != "" && (s.Storable == nil || s.Storable.Stores(path))
}

// Observing reports whether the config asks to decide and report, and to write nothing.
func (s *Settings) Observing() bool { return s.Config.Mode == config.ModeObserve }

// HoldsDeletion reports whether an upstream is held by the finalizer while it is being deleted, whatever exists.
func (s *Settings) HoldsDeletion() bool {
	return s.Config.Deletion.Wait || s.Config.Deletion.Before != nil
}

// HasRows reports whether the upstreams are rows of a query. They are read from a database, have no status, finalizers
// or labels, and cannot be asked about from the API server.
func (s *Settings) HasRows() bool { return s.Config.Source != nil }

// IsGone reports whether an upstream represents a row that the query does not return.
func (s *Settings) IsGone(upstream *unstructured.Unstructured) bool {
	return s.HasRows() && upstream.Object["row"] == nil
}

// UpstreamIsNamespace reports whether the config watches Namespaces, each of which is in itself.
func (s *Settings) UpstreamIsNamespace() bool {
	return s.Config.Watch.APIVersion == "v1" && s.Config.Watch.Kind == "Namespace"
}

// NoIndex is the index of no downstream, and not BeforeIndex.
const NoIndex = -2

// IndexOf finds a downstream by its name; NoIndex if there is none.
func (s *Settings) IndexOf(name string) int {
	i := slices.IndexFunc(s.Downstreams, func(d *Downstream) bool { return d.Name == name })
	if i < 0 {
		return NoIndex
	}
	return i
}

// ComesAfter are the downstreams that one reads or comes after.
func (s *Settings) ComesAfter(d *Downstream) []int {
	list := slices.Clone(d.Siblings)
	for _, a := range d.Config.After {
		if i := s.IndexOf(a.Name); i >= 0 && !slices.Contains(list, i) {
			list = append(list, i)
		}
	}
	return list
}

// HashKey is where objects have the hash.
func (s *Settings) HashKey() fieldpath.Path {
	if s.Hash.Label != "" {
		return fieldpath.New("metadata", "labels", s.Hash.Label)
	}
	return fieldpath.New("metadata", "annotations", s.Hash.Annotation)
}

// OwnTypes are the types of our conditions.
func (s *Settings) OwnTypes() []string {
	t := s.Config.Status.Conditions
	var own []string
	for _, name := range []string{t.Ready, t.Valid, t.Reconciling, t.Stalled} {
		if name != "" {
			own = append(own, name)
		}
	}
	return own
}

// ShardLabel is the label of downstreams that has the virtual shard of their upstream; "" for none.
func (s *Settings) ShardLabel() string {
	if shard := s.Config.Conventions.Shard; shard != nil {
		return shard.Label
	}
	return ""
}

// NameKey is the annotation of downstreams that has the name of the downstream in the config; "" for none.
func (s *Settings) NameKey() string {
	if n := s.Config.Conventions.DownstreamName; n != nil {
		return n.Annotation
	}
	return ""
}

// TokenKey is the annotation that holds the fencing token of the activation; "" for none.
func (s *Settings) TokenKey() string {
	if t := s.Config.Conventions.ActivationToken; t != nil {
		return t.Annotation
	}
	return ""
}

// Package store has the objects of the API server in memory with their history, and the watches of them.
package store

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/corollary-dev/corollary/pkg/memcluster/resource"
)

// Store has the objects, as etcd has them, and their watches. It has no goroutines: whoever uses it has locked it.
type Store struct {
	sync.Mutex
	Deliver func(Watch, Event) Delivery
	Objects map[schema.GroupResource]map[types.NamespacedName]*unstructured.Unstructured
	// Version is the resourceVersion of the last write, forgotten that of the last event that was removed from history.
	Version, forgotten uint64
	history            []change
	watches            map[*Stream]struct{}
}

// New returns an empty store, which calls deliver for each event of each watch.
func New(deliver func(Watch, Event) Delivery) *Store {
	return &Store{
		Deliver:   deliver,
		Objects:   map[schema.GroupResource]map[types.NamespacedName]*unstructured.Unstructured{},
		Version:   1, // as in etcd: the first write makes 2, and no object ever has 1
		forgotten: 1,
		watches:   map[*Stream]struct{}{},
	}
}

// Get returns an object as it is stored; nil if there is none.
func (s *Store) Get(gr schema.GroupResource, at types.NamespacedName) *unstructured.Unstructured {
	return s.Objects[gr][at]
}

// Commit stores u under a new resourceVersion and notifies the watches. old is nil for a new object.
func (s *Store) Commit(r *resource.Resource, old, u *unstructured.Unstructured) *unstructured.Unstructured {
	s.Version++
	u.SetResourceVersion(strconv.FormatUint(s.Version, 10))
	if s.Objects[r.Stored()] == nil {
		s.Objects[r.Stored()] = map[types.NamespacedName]*unstructured.Unstructured{}
	}
	s.Objects[r.Stored()][resource.NameOf(u)] = u
	s.record(change{version: s.Version, resource: r.Stored(), old: old, new: u})
	return u
}

// CommitChange is commit if anything has changed.
func (s *Store) CommitChange(r *resource.Resource, old, u *unstructured.Unstructured) *unstructured.Unstructured {
	if resource.Equal(old, u) {
		return old
	}
	return s.Commit(r, old, u)
}

// Remove removes an object and notifies the watches.
func (s *Store) Remove(r *resource.Resource, u *unstructured.Unstructured) {
	s.Version++
	delete(s.Objects[r.Stored()], resource.NameOf(u))
	s.record(change{version: s.Version, resource: r.Stored(), old: u})
}

// Selection is the part of a resource that a list or a watch selects.
type Selection struct {
	Resource  *resource.Resource
	Namespace string // "" for all
	Labels    labels.Selector
	Fields    fields.Selector
}

// has reports whether an object is selected, as its resource shows it.
func (s *Selection) has(u *unstructured.Unstructured) bool {
	if s.Namespace != "" && u.GetNamespace() != s.Namespace || !s.Labels.Matches(labels.Set(u.GetLabels())) {
		return false
	}
	values := fields.Set{"metadata.name": u.GetName(), "metadata.namespace": u.GetNamespace()}
	for _, path := range s.Resource.SelectableFields() {
		values[path], _, _ = unstructured.NestedString(u.Object, strings.Split(path, ".")...)
	}
	return s.Fields.Matches(values)
}

// view is an object as its resource shows it; nil if it is not selected, or there is none.
func (s *Selection) view(u *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	u, err := s.Resource.View(u)
	if err != nil || u == nil || !s.has(u) {
		return nil, err
	}
	return u, nil
}

// ParseVersion parses the resourceVersion of a list or a watch: 0 for any.
func (s *Store) ParseVersion(text string) (uint64, error) {
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, apierrors.NewBadRequest(
			"invalid resource version: " + field.Invalid(field.NewPath("resourceVersion"), text, err.Error()).Error(),
		)
	}
	if version > s.Version {
		late := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", version, s.Version), 1)
		late.ErrStatus.Details.Causes = []metav1.StatusCause{
			{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"},
		}
		return 0, late
	}
	return version, nil
}

// At returns the selected objects at a resourceVersion, ordered by namespace and name.
func (s *Store) At(selected *Selection, version uint64) ([]*unstructured.Unstructured, error) {
	if version < s.forgotten && version < s.Version {
		return nil, apierrors.NewResourceExpired("The provided continue parameter or resourceVersion is too old")
	}
	then := map[types.NamespacedName]*unstructured.Unstructured{}
	for at, u := range s.Objects[selected.Resource.Stored()] {
		then[at] = u
	}
	for _, past := range slices.Backward(s.history) {
		switch {
		case past.version <= version || past.resource != selected.Resource.Stored():
		case past.old == nil:
			delete(then, resource.NameOf(past.new))
		default:
			then[resource.NameOf(past.old)] = past.old
		}
	}
	var out []*unstructured.Unstructured
	for _, u := range then {
		u, err := selected.view(u)
		if err != nil {
			return nil, err
		}
		if u != nil {
			out = append(out, u)
		}
	}
	slices.SortFunc(out, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(resource.NameOf(a).String(), resource.NameOf(b).String())
	})
	return out, nil
}

// change is a write. old is nil if it created the object, new is nil if it deleted it.
type change struct {
	version  uint64
	resource schema.GroupResource
	old, new *unstructured.Unstructured
}

// record adds a change to the history and notifies the watches.
func (s *Store) record(ch change) {
	s.history = append(s.history, ch)
	for w := range s.watches {
		s.notify(w, ch)
	}
}

// Compact drops the history: a watch or a list at an earlier resourceVersion gets 410 Expired from now on.
func (s *Store) Compact() {
	s.Lock()
	defer s.Unlock()
	s.history, s.forgotten = nil, s.Version
}

// Finish stores a change. An object that is being deleted is removed with its last finalizer.
func (s *Store) Finish(r *resource.Resource, live, u *unstructured.Unstructured) *unstructured.Unstructured {
	seconds := u.GetDeletionGracePeriodSeconds()
	if u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 &&
		(seconds == nil || *seconds == 0) && !r.IsNamespace() {
		s.Remove(r, live)
		return u
	}
	return s.CommitChange(r, live, u)
}

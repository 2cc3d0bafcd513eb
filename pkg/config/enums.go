package config

import (
	"reflect"

	"github.com/corollary-dev/corollary/pkg/config/staged"
)

// Mode says whether an operator may write.
type Mode string

// NamespacesFrom says in which namespaces a downstream may live.
type NamespacesFrom string

// AdoptionPolicy says what happens when an object of a downstream's name exists already.
type AdoptionPolicy string

// ObservedGeneration says whether a downstream is ready without status.observedGeneration.
type ObservedGeneration string

// UpdatePolicy says how a downstream is brought to a new desired state.
type UpdatePolicy string

// Ownership says how much of an object is ours.
type Ownership string

// DeletionPolicy says what becomes of a downstream that is no longer wanted.
type DeletionPolicy string

// DriftPolicy says what happens when others change a downstream.
type DriftPolicy string

// EventPolicy says which Kubernetes events are sent.
type EventPolicy string

// AfterUntil says until when one waits for a downstream.
type AfterUntil string

// Scope says whether the objects of a kind are in namespaces.
type Scope string

// MissingPolicy says what an input that does not exist does.
type MissingPolicy string

// BeforePolicy says what becomes of a deletion whose deletion.before has not done its work.
type BeforePolicy string

// The values of the types above. The first of each is the default, but for EventsWarnings.
const (
	// ModeEnforce keeps the cluster as the config says.
	ModeEnforce Mode = "Enforce"
	// ModeObserve decides, counts and reports, and writes nothing.
	ModeObserve Mode = "Observe"

	// NamespacesSame allows the upstream's own namespace; a Namespace's own is itself.
	NamespacesSame NamespacesFrom = "Same"
	// NamespacesAny allows every namespace.
	NamespacesAny NamespacesFrom = "Any"
	// NamespacesList allows the namespaces that are listed.
	NamespacesList NamespacesFrom = "List"

	// AdoptNever leaves existing objects alone: a conflict.
	AdoptNever AdoptionPolicy = "Never"
	// AdoptIfUnowned takes over an existing object that has no owner.
	AdoptIfUnowned AdoptionPolicy = "IfUnowned"

	// ObservedAuto asks for it as long as nothing shows that the controller does not write it.
	ObservedAuto ObservedGeneration = "Auto"
	// ObservedRequired always asks for it.
	ObservedRequired ObservedGeneration = "Required"
	// ObservedOptional compares it only if it is set.
	ObservedOptional ObservedGeneration = "Optional"

	// UpdateApply applies changes.
	UpdateApply UpdatePolicy = "Apply"
	// UpdateRecreate deletes and creates again where the API server refuses to change an immutable field.
	UpdateRecreate UpdatePolicy = "Recreate"
	// UpdateCreateOnly never changes what exists.
	UpdateCreateOnly UpdatePolicy = "CreateOnly"

	// DeletionDelete deletes the object.
	DeletionDelete DeletionPolicy = "Delete"
	// DeletionOrphan leaves the object and takes our marks off.
	DeletionOrphan DeletionPolicy = "Orphan"

	// OwnershipObject is for an object that follows from its upstream.
	OwnershipObject Ownership = "Object"
	// OwnershipFields is for fields of an object that someone else made.
	OwnershipFields Ownership = "Fields"

	// DriftEnforce undoes changes.
	DriftEnforce DriftPolicy = "Enforce"
	// DriftReport only reports them.
	DriftReport DriftPolicy = "Report"
	// DriftIgnore does not look.
	DriftIgnore DriftPolicy = "Ignore"

	// EventsAll sends events of success too.
	EventsAll EventPolicy = "All"
	// EventsWarnings sends only warnings; the default.
	EventsWarnings EventPolicy = "Warnings"
	// EventsNone sends none.
	EventsNone EventPolicy = "None"

	// SHA256 is the default algorithm.
	SHA256 = "sha256"

	// PropagationBackground deletes the object at once and what it owns afterwards.
	PropagationBackground = "Background"

	// AfterReady waits until it is ready.
	AfterReady AfterUntil = "Ready"
	// AfterCreated waits until it exists.
	AfterCreated AfterUntil = "Created"

	// ScopeNamespaced is for objects in namespaces.
	ScopeNamespaced Scope = "Namespaced"
	// ScopeCluster is for objects of the whole cluster.
	ScopeCluster Scope = "Cluster"

	// MissingWait lets what reads the input wait for it.
	MissingWait MissingPolicy = "Wait"
	// MissingAllow makes it null.
	MissingAllow MissingPolicy = "Allow"

	// BeforeHold keeps the upstream and its downstreams until a person acts.
	BeforeHold BeforePolicy = "Hold"
	// BeforeProceed goes on with the deletion.
	BeforeProceed BeforePolicy = "Proceed"
)

// EnumTypes lists the values of the enumerated types, for validation and for the JSON Schema alike.
var EnumTypes = map[reflect.Type][]string{
	reflect.TypeFor[Mode]():               names(ModeEnforce, ModeObserve),
	reflect.TypeFor[NamespacesFrom]():     names(NamespacesSame, NamespacesAny, NamespacesList),
	reflect.TypeFor[AdoptionPolicy]():     names(AdoptNever, AdoptIfUnowned),
	reflect.TypeFor[ObservedGeneration](): names(ObservedAuto, ObservedRequired, ObservedOptional),
	reflect.TypeFor[UpdatePolicy]():       names(UpdateApply, UpdateRecreate, UpdateCreateOnly),
	reflect.TypeFor[DeletionPolicy]():     names(DeletionDelete, DeletionOrphan),
	reflect.TypeFor[Ownership]():          names(OwnershipObject, OwnershipFields),
	reflect.TypeFor[DriftPolicy]():        names(DriftEnforce, DriftReport, DriftIgnore),
	reflect.TypeFor[EventPolicy]():        names(EventsAll, EventsWarnings, EventsNone),
	reflect.TypeFor[AfterUntil]():         names(AfterReady, AfterCreated),
	reflect.TypeFor[Scope]():              names(ScopeNamespaced, ScopeCluster),
	reflect.TypeFor[MissingPolicy]():      names(MissingWait, MissingAllow),
	reflect.TypeFor[BeforePolicy]():       names(BeforeHold, BeforeProceed),
	reflect.TypeFor[staged.OnHalt]():      names(staged.HaltHold, staged.HaltRevert),
}

func names[T ~string](values ...T) []string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = string(v)
	}
	return out
}

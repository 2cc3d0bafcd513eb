// Package conversion has the types of conversions between the versions of a kind, and of files of kind Conversion.
package conversion

import "github.com/corollary-dev/corollary/pkg/config/common"

const (
	// ConversionKind is the kind of a file that converts a kind which no operator watches.
	ConversionKind = "Conversion"
	// CertificateKind is the kind of a file that says what was proven of a conversion.
	CertificateKind = "ConversionCertificate"
	// PublishVerify compares spec.conversion, which someone else writes.
	PublishVerify = "Verify"
	// MigrateAuto rewrites stored objects.
	MigrateAuto = "Auto"
)

// Conversion says how objects of a custom kind are converted between its served versions: each spoke to the hub and
// back, so that two spokes convert by way of the hub.
type Conversion struct {
	// Hub is the version that every other served version converts through.
	Hub string `json:"hub"`
	// Spokes are the other served versions.
	Spokes []Spoke `json:"spokes" min:"1"`
	// Preserve keeps what the target version has no room for, so that it is there again after the way back.
	Preserve *Preserve `json:"preserve,omitempty"`
	// Publish is Auto (default: spec.conversion of the CustomResourceDefinition is written and kept), or Verify: someone
	// else writes it, such as a GitOps repository, and it is only compared.
	Publish string `json:"publish,omitempty" enum:"Auto,Verify"`
	// Migrate is Manual (default: corollary migrate), or Auto: when the CustomResourceDefinition stores another version
	// than before, or stops serving one, the leader rewrites the stored objects.
	Migrate string `json:"migrate,omitempty" enum:"Manual,Auto"`
}

// ConversionDocument is a file of kind Conversion: for a kind that no operator of these configs watches.
type ConversionDocument struct {
	// APIVersion is corollary.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is Conversion.
	Kind string `json:"kind"`
	// Metadata names the conversion.
	Metadata common.Metadata `json:"metadata"`
	// For is the kind whose objects are converted.
	For ConvertedKind `json:"for"`
	// FieldManager is the field manager under which spec.conversion of the CustomResourceDefinition is written.
	FieldManager string `json:"fieldManager"`
	Conversion
}

// ConvertedKind is a custom kind in all its versions.
type ConvertedKind struct {
	// Group of the kind.
	Group string `json:"group"`
	// Kind of the objects.
	Kind string `json:"kind"`
}

// Spoke is a version that converts to the hub and back.
type Spoke struct {
	// Version of the spoke, such as v1beta1.
	Version string `json:"version"`
	// Rules state both directions at once.
	Rules []ConversionRule `json:"rules,omitempty"`
	// ToHub are steps from this version to the hub, after the rules. All of them read the object as it was before any.
	ToHub []ConversionStep `json:"toHub,omitempty"`
	// FromHub are steps from the hub to this version.
	FromHub []ConversionStep `json:"fromHub,omitempty"`
	// Lost acknowledges fields that do not survive a conversion.
	Lost []LostField `json:"lost,omitempty"`
}

// ConversionRule states both directions: a field of the spoke, and the field of the hub that it becomes. Exactly one of
// move, wrap, unwrap, forEach and default is set.
type ConversionRule struct {
	// Move is the path of a field of the spoke that has the path to in the hub.
	Move string `json:"move,omitempty"`
	// Wrap is the path of one value in the spoke that is a list of one item in the hub.
	Wrap string `json:"wrap,omitempty"`
	// Unwrap is the path of a list of one item in the spoke that is one value in the hub.
	Unwrap string `json:"unwrap,omitempty"`
	// ForEach is the path of a list or map in the spoke to whose items the rules apply.
	ForEach string `json:"forEach,omitempty"`
	// Default is the path of a field that one of the versions does not have: it gets the value on the way to the other
	// one.
	Default string `json:"default,omitempty"`
	// To is the path in the hub, by default the same.
	To string `json:"to,omitempty"`
	// Values maps values of the spoke to values of the hub, for move.
	Values map[string]string `json:"values,omitempty"`
	// Value is the one that default gives.
	Value any `json:"value,omitempty"`
	// Rules apply to each item, for forEach. Their paths begin at the item.
	Rules []ConversionRule `json:"rules,omitempty"`
	// ToHub are steps for each item on the way to the hub, for forEach. Their paths begin at the item, which is self in
	// them.
	ToHub []ConversionStep `json:"toHub,omitempty"`
	// FromHub are steps for each item on the way from the hub, for forEach.
	FromHub []ConversionStep `json:"fromHub,omitempty"`
}

// ConversionStep is one step of one direction: set with expression, or remove.
type ConversionStep struct {
	// Set is the path of the field to set.
	Set string `json:"set,omitempty"`
	// Expression is a CEL expression over self, the object before any step.
	Expression string `json:"expression,omitempty" holds:"cel"`
	// Remove are the paths of fields to remove.
	Remove []string `json:"remove,omitempty"`
}

// Preserve says where data travel that the target version has no room for.
type Preserve struct {
	// Annotation that holds them.
	Annotation string `json:"annotation" form:"key"`
}

// LostField acknowledges a loss.
type LostField struct {
	// Path of the field, in the version that has it.
	Path string `json:"path"`
	// Reason why it may be lost.
	Reason string `json:"reason"`
}

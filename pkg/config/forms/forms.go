package forms

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Syntax is a form that Kubernetes wants of a name: how messages call it and how to write it. Its own messages
// are of a length that hides the rest.
type Syntax struct {
	Name, Fix string
	Check     func(string) []string
}

// The forms of names.
var (
	DNSLabel = Syntax{"a DNS label",
		"write at most 63 small letters, digits and -, beginning and ending with a letter or digit",
		validation.IsDNS1123Label}
	NamespaceName      = Syntax{"a namespace's name", DNSLabel.Fix, validation.IsDNS1123Label}
	ServiceAccountName = Syntax{"a ServiceAccount's name", "write small letters, digits, - and .",
		validation.IsDNS1123Subdomain}
	LeaseName = Syntax{"a Lease's name", "write small letters, digits, - and .", validation.IsDNS1123Subdomain}
	HostName  = Syntax{"a name in DNS", "write one such as active.example.com", func(s string) []string {
		if len(s) <= MaxName && hostNames.MatchString(s) {
			return nil
		}
		return []string{"wrong"}
	}}
	IdentityName = Syntax{"an identity",
		"write at most 63 letters, digits, - _ ., beginning and ending with a letter or digit",
		validation.IsValidLabelValue}
	KindName = Syntax{"a kind", "write letters and digits, beginning with a letter, such as Deployment",
		func(s string) []string {
			return validation.IsDNS1035Label(strings.ToLower(s))
		}}
	QualifiedName = Syntax{"a key that Kubernetes takes",
		"write NAME or DOMAIN/NAME; NAME has at most 63 letters, digits, - _ ., " +
			"beginning and ending with a letter or digit, DOMAIN is in small letters", validation.IsQualifiedName}
	LabelValue = Syntax{"a label's value",
		"write at most 63 letters, digits, - _ ., beginning and ending with a letter or digit",
		validation.IsValidLabelValue}
	Group = Syntax{"GROUP/VERSION", "write GROUP in small letters, digits, - and ., such as apps/v1",
		validation.IsDNS1123Subdomain}
	Version = Syntax{"GROUP/VERSION", "write VERSION in small letters and digits, such as apps/v1",
		validation.IsDNS1035Label}
)

// hostNames matches names in DNS.
var hostNames = regexp.MustCompile(HostNamePattern)

// CRDVersion is the form of a version of a custom kind.
var CRDVersion = Syntax{"a version", "write small letters and digits, such as v1beta1", validation.IsDNS1035Label}

// The forms of a Secret that a config names.
var (
	SecretName = Syntax{"a Secret's name", ConfigMapName.Fix, ConfigMapName.Check}
	SecretKey  = Syntax{"a key of a Secret", ConfigMapKey.Fix, ConfigMapKey.Check}
)

// The forms of a ConfigMap that a config names.
var (
	ConfigMapName = Syntax{"a ConfigMap's name", "write small letters, digits, - and .", validation.IsDNS1123Subdomain}
	ConfigMapKey  = Syntax{"a key of a ConfigMap", "write letters, digits, - _ and .", validation.IsConfigMapKey}
)

// The forms of an input.
var (
	ObjectName = Syntax{"an object's name", "write small letters, digits, - and ., or give objectName, a CEL expression",
		validation.IsDNS1123Subdomain}
	// InputNamespace is text that the API server is asked for, never what an upstream says: who may write
	// upstreams could read any Secret otherwise.
	InputNamespace = Syntax{NamespaceName.Name,
		"write the namespace as fixed text, small letters, digits and -: an upstream can never choose it",
		NamespaceName.Check}
)

// ResourceName is the form of a name of a resource.
var ResourceName = Syntax{
	"a name of a resource",
	"write at most 63 small letters, digits and -, beginning with a letter",
	validation.IsDNS1035Label,
}

// The same forms, and others, as patterns of the JSON schema.
const (
	DNSLabelPattern   = `^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`
	APIVersionPattern = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[a-z]([-a-z0-9]*[a-z0-9])?|v[0-9]+[a-z0-9]*)$`
	KindPattern       = `^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$`
	KeyPattern        = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]{0,61})?[A-Za-z0-9]$`
	SubdomainPattern  = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	HostNamePattern   = `^[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([-A-Za-z0-9_]*[A-Za-z0-9_])?)*\.?$`
	ResourcePattern   = `^[a-z]([-a-z0-9]*[a-z0-9])?$`
	SchemaNamePattern = `^[A-Za-z_][-A-Za-z0-9_]*$`
	PathPattern       = `^(\.|\[).`
	StatusPathPattern = `^\.status[.\[].`
)

// FinalizerPattern is KeyPattern with a domain that must be there.
var FinalizerPattern = strings.Replace(KeyPattern, "/)?", "/)", 1)

// MaxName is the API server's limit for the names of most objects, and for the keys of a ConfigMap.
const MaxName = 253

// MaxLabel is the API server's limit for a DNS label.
const MaxLabel = 63

// AtLeastPattern is the form of a version that a kind has at least.
const AtLeastPattern = `^>= ?v?[0-9]+\.[0-9]+(\.[0-9]+)?$`

// SharePattern is the form of a percentage.
const SharePattern = `^(100|[0-9]{1,2})%$`

// StepPattern is the form of a step of a rollout: a number or a percentage, and not 0.
const StepPattern = `^([1-9][0-9]{0,8}|(100|[1-9][0-9]?)%)$`

// MaxManager is the API server's limit for a field manager's name, in bytes.
const MaxManager = 128

// MemberName is what CEL can select from a map: downstreams.NAME, inputs.NAME, params.NAME.
const MemberName = `^[a-z][a-zA-Z0-9_]*$`

// ConditionType is the API server's pattern for metav1.Condition's type.
const ConditionType = `^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`

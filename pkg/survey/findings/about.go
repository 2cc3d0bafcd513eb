// Package findings says of each object that a survey has found something about what that is: a row for a list, or an
// item of a plan. It asks nothing; texts are for people.
package findings

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/operator/compile"
	"github.com/corollary-dev/corollary/pkg/reconcile/preview"
)

// Object says which object is meant.
type Object struct {
	Kind schema.GroupVersionKind
	At   operator.Ref
	UID  string
}

func (o Object) String() string { return o.Kind.Kind + " " + o.At.String() }

// About is what is said about an object, whatever the command.
type About struct {
	Operator   string
	Upstream   Object
	Downstream string
	Object     Object
	State      string
	Reason     string
}

// aboutChange is what a change says about its object.
func aboutChange(pl *compile.Pipeline, f *preview.Finding, c preview.Change) About {
	about := About{Operator: f.Operator, Upstream: Upstream(pl, f), Downstream: c.Downstream,
		Object: ofChange(c), State: string(c.State),
		Reason: c.Reason}
	if c.Action == preview.Leftover {
		about.Reason += toDelete(f, about.Object)
	}
	return about
}

// aboutForgotten is what is said about an object that only the status records; its reason begins with reason.
func aboutForgotten(pl *compile.Pipeline, f *preview.Finding, r preview.Forgotten, reason string) About {
	object := Forgotten(r)
	advice := toDelete(f, object)
	if r.AppliedBy != "" {
		advice += "; field manager " + r.AppliedBy + " applies it and may need it"
	}
	return About{Operator: f.Operator, Upstream: Upstream(pl, f), Downstream: r.Name, Object: object,
		Reason: reason + advice}
}

// Upstream names the upstream of a finding.
func Upstream(pl *compile.Pipeline, f *preview.Finding) Object {
	if f.Ref == (operator.Ref{}) {
		return Object{Kind: pl.Upstream.GVK, At: operator.Ref{Name: "-"}}
	}
	up := Object{Kind: pl.Upstream.GVK, At: f.Ref}
	if f.Upstream != nil {
		up.UID = string(f.Upstream.GetUID())
	}
	return up
}

// WhyForgotten says of which downstream an object is that the config has forgotten, and how that is known.
func WhyForgotten(r preview.Forgotten) string {
	says := "the status records it for"
	if r.State == "" {
		says = "it says that it is of"
	}
	return says + " downstream " + r.Name + ", which the config no longer has, or has with another kind"
}

// Forgotten names an object that only the status records, or that only says itself of which downstream it is.
func Forgotten(r preview.Forgotten) Object {
	return Object{schema.FromAPIVersionAndKind(r.APIVersion, r.Kind),
		operator.Ref{Namespace: r.Namespace, Name: r.ObjectName},
		string(r.UID)}
}

// ofChange names the object of a change: its target, or the live object if there is none.
func ofChange(c preview.Change) Object {
	ref := Object{Kind: c.Kind, At: c.Target}
	if c.Live == nil {
		return ref
	}
	ref.UID = string(c.Live.UID)
	if ref.At.Name == "" {
		ref.At = operator.Ref{Namespace: c.Live.Namespace, Name: c.Live.Name}
	}
	return ref
}

// IsAboutNothing reports whether a change is about a downstream that is neither wanted nor there.
func IsAboutNothing(c preview.Change) bool {
	return c.State == operator.StateUnwanted && c.Live == nil
}

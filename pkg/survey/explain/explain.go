// Package explain says why an object is as it is: what it follows from, and what follows from it, across several
// operators.
package explain

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/corollary-dev/corollary/pkg/config/load"
	"github.com/corollary-dev/corollary/pkg/kinds"
	"github.com/corollary-dev/corollary/pkg/operator"
	"github.com/corollary-dev/corollary/pkg/survey"
	"github.com/corollary-dev/corollary/pkg/survey/findings"
)

// Options say where an object is looked for.
type Options struct {
	Files []*load.File
	// Kinds are those of the configs that the API server serves.
	Kinds  []kinds.Kind
	Client dynamic.Interface
	// Open surveys the operator of one of the files, with documents, in one namespace where its upstreams have one.
	Open func(ctx context.Context, file int, namespace string) (*survey.Survey, error)
}

// Explanation is what there is to say about an object, in this order.
type Explanation struct {
	Object findings.Object
	Parts  []Part
}

// Part is an upstream, or a remark that is not about one upstream.
type Part struct {
	Upstream *Upstream
	Remark   string
}

// Upstream is what there is to say about an upstream, and about objects that follow from it.
type Upstream struct {
	Operator    string
	Object      findings.Object
	Notes       []string
	Downstreams []Downstream
	// LeftOver are notes on objects that follow from it no more.
	LeftOver []string
}

// Downstream is what there is to say about one object.
type Downstream struct {
	findings.Item
	// Asked: it is the object in question.
	Asked bool
	// Ready: it is as it was applied, and nothing keeps it from being ready.
	Ready bool
	Notes []string
	// Fields says what the differences are; empty if they do not matter here.
	Fields string
}

// Explain explains an object. After an error, what it returns is incomplete.
func Explain(ctx context.Context, o Options, k kinds.Kind, object *unstructured.Unstructured) (*Explanation, error) {
	asked := findings.Object{Kind: k.GVK, At: operator.Ref{Namespace: object.GetNamespace(), Name: object.GetName()},
		UID: string(object.GetUID())}
	e := &explanation{Options: o, object: asked, explained: map[string]bool{}, out: &Explanation{Object: asked}}
	err := e.explain(ctx, k, object)
	return e.out, err
}

// explanation goes up and down the chain from one object and takes down what it meets.
type explanation struct {
	Options
	object findings.Object
	out    *Explanation
	// explained are the upstreams that were explained, so that no chain goes on forever.
	explained map[string]bool
	// written is when the operator last wrote to the upstream that is being explained.
	written time.Time
}

// begin begins an upstream.
func (e *explanation) begin(operator string, object findings.Object) *Upstream {
	up := &Upstream{Operator: operator, Object: object}
	e.out.Parts = append(e.out.Parts, Part{Upstream: up})
	return up
}

func (e *explanation) remark(text string) { e.out.Parts = append(e.out.Parts, Part{Remark: text}) }

package webhook

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/corollary-dev/corollary/pkg/convert"
)

// maxReview bounds a review in bytes: the API server puts a whole list into one.
const maxReview = 256 << 20

// Handler answers ConversionReviews of apiextensions.k8s.io/v1 with the converter of each object's kind; nil from
// converters is a kind that is not converted here.
type Handler struct {
	Converters func(schema.GroupKind) *convert.Converter
	// Observe is called with the result of each review; nil for nobody.
	Observe func(objects int, err error)
	// MaxTime bounds the answer to a review, and then how long the client may take to read it. Default 30 s: the API
	// server waits no longer.
	MaxTime time.Duration
}

// review is a ConversionReview whose objects are not read yet.
type review struct {
	metav1.TypeMeta `json:",inline"`
	Request         *reviewRequest `json:"request,omitempty"`
}

type reviewRequest struct {
	UID               types.UID         `json:"uid"`
	DesiredAPIVersion string            `json:"desiredAPIVersion"`
	Objects           []json.RawMessage `json:"objects"`
}

// ServeHTTP implements http.Handler. What cannot be read as a review is a 400; what cannot be converted is a failure in
// the answer, which the API server shows to whoever asked.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	maxTime := cmp.Or(h.MaxTime, 30*time.Second)
	// The end of the process cancels the request's context, and lets it finish what it has begun.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), maxTime)
	defer cancel()
	memory := reservation{budget: &bodies}
	defer memory.release()
	text, err := memory.read(ctx, w, r.Body, r.ContentLength, min(maxTime, maxStepTime))
	if code := codeOf(err); code != 0 {
		w.Header().Set("Connection", "close") // the rest of the body is not read
		http.Error(w, err.Error(), code)
		return
	}
	var in review
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(text, &in)
	}
	version := apiextensionsv1.SchemeGroupVersion.String()
	if err != nil || in.Kind != "ConversionReview" || in.APIVersion != version || in.Request == nil {
		http.Error(w, "the body is not a ConversionReview of "+version, http.StatusBadRequest)
		return
	}
	if in.Request.UID == "" { // an answer without the uid of its review is not accepted
		http.Error(w, "request.uid is missing: set the uid of the review", http.StatusBadRequest)
		return
	}
	objects, err := h.convert(ctx, in.Request)
	if h.Observe != nil {
		h.Observe(len(in.Request.Objects), err)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(maxTime)) // only tests have no deadlines
	// unless the API server has gone, which asks again
	_ = writeAnswer(w, in.Request.UID, objects, err)
}

// writeAnswer writes a ConversionReview. Objects are texts already: an encoder would read all of them once more.
func writeAnswer(w io.Writer, uid types.UID, objects [][]byte, failure error) error {
	result := metav1.Status{Status: metav1.StatusSuccess}
	if failure != nil {
		result, objects = metav1.Status{Status: metav1.StatusFailure, Message: failure.Error()}, nil
	}
	before, err := json.Marshal(uid)
	if err != nil {
		return err
	}
	after, err := json.Marshal(result)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, `{"kind":"ConversionReview","apiVersion":%q,"response":{"uid":%s,"convertedObjects":[`, apiextensionsv1.SchemeGroupVersion, before)
	for i, object := range objects {
		if i > 0 {
			_ = out.WriteByte(',') // Flush returns the first error
		}
		_, _ = out.Write(object)
	}
	fmt.Fprintf(out, `],"result":%s}}`, after)
	return out.Flush()
}

// convert converts the objects of a review, several at a time. The protocol has one result for all: the error is that
// of the first object that cannot be converted.
func (h *Handler) convert(ctx context.Context, in *reviewRequest) ([][]byte, error) {
	gv, err := schema.ParseGroupVersion(in.DesiredAPIVersion)
	if err != nil {
		return nil, fmt.Errorf("desiredAPIVersion: %w", err)
	}
	converted, errs := make([][]byte, len(in.Objects)), make([]error, len(in.Objects))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := min(runtime.GOMAXPROCS(0), 1+len(in.Objects)/minShare)
	share := func(n int) {
		for i := n; i < len(in.Objects) && ctx.Err() == nil; i += workers {
			if converted[i], errs[i] = h.object(ctx, in.Objects[i], gv); errs[i] != nil {
				cancel()
			}
		}
	}
	var group sync.WaitGroup
	for n := 1; n < workers; n++ {
		group.Go(func() { share(n) })
	}
	share(0)
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return converted, ctx.Err()
}

// minShare is how many objects are worth a worker of their own.
const minShare = 16

// object converts one object. Metadata stay as they were sent, unless the conversion needs them: most of an object's
// text is there.
func (h *Handler) object(ctx context.Context, text []byte, to schema.GroupVersion) (_ []byte, err error) {
	defer convert.Recovered(&err)
	var fields map[string]json.RawMessage
	if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &fields); err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	var kind string
	_ = kjson.UnmarshalCaseSensitivePreserveInts(fields["kind"], &kind) // without one there is no converter
	c := h.Converters(schema.GroupKind{Group: to.Group, Kind: kind})
	if c == nil {
		return nil, fmt.Errorf("%s: no conversion of %s.%s is configured", nameOf(kind, fields), kind, to.Group)
	}
	metadata := fields["metadata"]
	keeps := !c.NeedsMetadata && bytes.HasPrefix(metadata, []byte("{"))
	obj := make(map[string]any, len(fields))
	for name, text := range fields {
		if keeps && name == "metadata" {
			obj[name] = map[string]any{}
			continue
		}
		var value any
		if err := kjson.UnmarshalCaseSensitivePreserveInts(text, &value); err != nil {
			return nil, fmt.Errorf("reading an object: %w", err)
		}
		obj[name] = value
	}
	if err := c.Convert(ctx, obj, to.Version); err != nil {
		return nil, fmt.Errorf("%s: %w", nameOf(kind, fields), err)
	}
	if !keeps {
		return json.Marshal(obj)
	}
	delete(obj, "metadata")
	rest, err := json.Marshal(obj) // apiVersion and kind at least
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(`{"metadata":`), metadata, []byte{','}, rest[1:]), nil
}

// nameOf is how an object is called in messages.
func nameOf(kind string, fields map[string]json.RawMessage) string {
	var metadata struct{ Namespace, Name string }
	_ = json.Unmarshal(fields["metadata"], &metadata) // as much as can be read
	if metadata.Namespace == "" {
		return fmt.Sprintf("%s %s", kind, metadata.Name)
	}
	return fmt.Sprintf("%s %s/%s", kind, metadata.Namespace, metadata.Name)
}

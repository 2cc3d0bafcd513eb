package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corollary-dev/corollary/internal/golden"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/redact"
)

var (
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	web         = Target{GVR: deployments, Namespace: "apps", Name: "web"}
)

// answer returns a refusal of the API server as client-go does.
func answer(code int, reason metav1.StatusReason, message string, details *metav1.StatusDetails) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message, Details: details}}
}

func lost(err error) error {
	return &url.Error{Op: "Patch", URL: "https://127.0.0.1:6443/apis", Err: err}
}

// TestClassify classifies the refusals in testdata/classify.txt, which are an API server's.
func TestClassify(t *testing.T) {
	golden.Table(t, "testdata/classify.txt", func(t *testing.T, input string) string {
		status := metav1.Status{Status: metav1.StatusFailure}
		if err := yaml.UnmarshalStrict([]byte(input), &status); err != nil {
			t.Fatal(err)
		}
		got := classified(t, &apierrors.StatusError{ErrStatus: status})
		if got.RetryAfter > 0 {
			return fmt.Sprintf("%s: %s\nafter %s", got.Reason, got.Message, got.RetryAfter)
		}
		return strings.TrimSpace(got.Reason + ": " + got.Message)
	})
}

// classified is the class of an error of an apply, which is that of the error alone.
func classified(t *testing.T, err error) Failure {
	t.Helper()
	o := op{verb: "apply", doing: "applying", needs: "patch"}
	got := Classify(fmt.Errorf("syncing deployment: %w", &Error{Verb: o.verb, Target: web, Err: err, op: o}))
	if bare := Classify(err); bare.Reason != got.Reason {
		t.Errorf("without an *Error around it classified %q, with one %q", bare.Reason, got.Reason)
	}
	return got
}

// TestClassifyOthers classifies what is not an answer of an API server.
func TestClassifyOthers(t *testing.T) {
	if got := Classify(nil); got.Reason != "" {
		t.Errorf("no error is classified %q", got.Reason)
	}
	for _, tc := range []struct {
		reason string
		err    error
		want   string
		says   string
	}{
		{"a missing kind: client-go makes this of a 404 that is no status",
			apierrors.NewGenericServerResponse(404, "PATCH", schema.GroupResource{}, "", "404 page not found", 0, true),
			ReasonKindNotServed, "does not serve deployments.apps in version v1; is its CustomResourceDefinition installed"},
		{"connection refused", lost(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), ReasonUnavailable, ""},
		{"a connection that ends in the middle", lost(io.ErrUnexpectedEOF), ReasonUnavailable, ""},
		{"out of time", lost(context.DeadlineExceeded), ReasonUnavailable, ""},
		{"shutting down is not an outage", lost(context.Canceled), ReasonCanceled, ""},
		{"anything else", errors.New("what?"), ReasonUnknown, "what?"},
	} {
		if got := classified(t, tc.err); got.Reason != tc.want || got.RetryAfter != 0 || !strings.Contains(got.Message, tc.says) {
			t.Errorf("%s: classified %+v, want %s: %s", tc.reason, got, tc.want, tc.says)
		}
	}
}

func TestClassifyMeaning(t *testing.T) {
	conflict := apierrors.NewConflict(deployments.GroupResource(), "web", errors.New("modified"))
	cases := []struct {
		reason  string
		meaning error
		want    string
	}{
		{"what the caller found out counts more than the code", ErrExists, ReasonAlreadyExists},
		{"gone", ErrGone, ReasonNotFound},
		{"replaced", ErrReplaced, ReasonReplaced},
		{"changed", ErrConflict, ReasonChanged},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			err := &Error{Verb: "apply", Target: web, Err: conflict, Meaning: tc.meaning, op: op{doing: "applying"}}
			got := Classify(err)
			if got.Reason != tc.want || got.Message != "applying deployments.apps apps/web: "+tc.meaning.Error() {
				t.Errorf("classified %+v, want %s", got, tc.want)
			}
			if !errors.Is(err, tc.meaning) || !apierrors.IsConflict(err) {
				t.Errorf("%v hides its meaning or the API server's answer", err)
			}
		})
	}
}

func TestNotFoundOfNamespaceItself(t *testing.T) {
	ns := Target{GVR: schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, Name: "apps"}
	err := &Error{Target: ns, Err: apierrors.NewNotFound(ns.GVR.GroupResource(), "apps")}
	must.Same(t, ReasonNotFound, Classify(err).Reason, "a missing namespace that was itself the object")
	if !objectNotFound(err.Err, ns) {
		t.Error("a missing namespace that was itself the object is not seen as the object")
	}
}

func TestAbout(t *testing.T) {
	cases := []struct {
		reason string
		err    error
		want   bool
	}{
		{"the object", apierrors.NewNotFound(deployments.GroupResource(), "web"), true},
		{"the object, by its kind", answer(409, metav1.StatusReasonConflict, "", &metav1.StatusDetails{Kind: "Deployment", Group: "apps",
			Name: "web"}), true},
		{"another object", apierrors.NewConflict(deployments.GroupResource(), "api", errors.New("modified")), false},
		{"its namespace", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "web"), false},
		{"a quota that others count against, too", apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "web",
			errors.New("modified")), false},
		{"an answer that names nothing", answer(404, metav1.StatusReasonNotFound, "", nil), true},
		{"no answer", io.EOF, false},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			if got := isAbout(tc.err, web); got != tc.want {
				t.Errorf("about gave %v for %v", got, tc.err)
			}
		})
	}
	if objectNotFound(answer(404, metav1.StatusReasonNotFound, `admission webhook "w.example.com" denied the request: no such team`, nil), web) {
		t.Error("what a webhook misses is taken for the object")
	}
	if objectNotFound(apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "apps"), web) {
		t.Error("a missing namespace is taken for the object")
	}
}

func TestShorten(t *testing.T) {
	cases := []struct {
		reason string
		in     string
		limit  int
		want   string
	}{
		{"short texts stay", "spec: bad", 20, "spec: bad"},
		{"lines become one", "a:\n\tb\n", 20, "a: b"},
		{"the end says what is wrong, so the middle goes", "spec.template: Invalid value: {much}: field is immutable", 40,
			"spec.template … uch}: field is immutable"},
		{"characters are not split", strings.Repeat("é", 40), 10, "ééé … éééé"},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			got := shorten(tc.in, tc.limit)
			must.Same(t, tc.want, got, "shorten gave")
			if n := len([]rune(got)); n > tc.limit {
				t.Errorf("%q has %d characters, over %d", got, n, tc.limit)
			}
		})
	}
}

func TestMessagesStayShort(t *testing.T) {
	var causes []metav1.StatusCause
	for i := range 50 {
		causes = append(causes, metav1.StatusCause{Field: fmt.Sprintf("spec.f%d", i), Message: strings.Repeat("x", 100000) + ": immutable"})
	}
	err := answer(422, metav1.StatusReasonInvalid, strings.Repeat("y", 1<<20), &metav1.StatusDetails{Causes: causes})
	got := Classify(&Error{Target: web, Err: err, op: op{doing: "applying"}}).Message
	if len([]rune(got)) > 1000 || !strings.HasSuffix(got, "and 47 more") {
		t.Errorf("a message of %d characters, want at most 1000 that end in what was left out: %s", len(got), got)
	}
}

// TestMessagesHaveOneOrder: the message of a refusal does not depend on the order of the causes, which is random
// because the API server iterates over maps.
func TestMessagesHaveOneOrder(t *testing.T) {
	var causes []metav1.StatusCause
	for _, key := range []string{"..", "/", "a b", "c d", "e f"} {
		causes = append(causes, metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "data[" + key + "]", Message: "no key"})
	}
	lines := []string{"  .a: expected string, got &value.valueUnstructured{Value:5}", "  .b: field not declared in schema", "  .c: no"}
	port := 0
	cases := []struct {
		reason   string
		shuffled func() error
	}{
		{"causes of a validation", func() error {
			some := slices.Clone(causes)
			rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			return answer(422, metav1.StatusReasonInvalid, `ConfigMap "web" is invalid`, &metav1.StatusDetails{Causes: some})
		}},
		{"what does not fit a schema", func() error {
			some := slices.Clone(lines)
			rand.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			return answer(500, "", "failed to create typed patch object (/web; apps/v1, Kind=Deployment): errors:\n"+strings.Join(some, "\n"), nil)
		}},
		{"what cannot be sent", func() error {
			_, err := encode(map[string]any{"data": map[string]any{"a": "\xff", "b": "\xff", "\xff": "", "d": math.NaN()}})
			return err
		}},
		{"the port of this end of a connection", func() error {
			port++
			return lost(fmt.Errorf("read tcp 10.0.0.1:%d->10.0.0.2:6443: read: connection reset by peer", 40000+port))
		}},
		{"that of the API server's connection to a webhook", func() error {
			port++
			return apierrors.NewInternalError(fmt.Errorf(`failed calling webhook "w": write tcp [::1]:%d->[::1]:443: write: broken pipe`, 40000+port))
		}},
	}
	for _, tc := range cases {
		t.Run(tc.reason, func(t *testing.T) {
			seen := map[string]bool{}
			for range 100 {
				err := &Error{Target: web, Err: tc.shuffled(), op: op{doing: "applying"}}
				seen[Classify(err).Message+"\n"+ClassifyShown(err, redact.Words{"data": true}).Message] = true
			}
			if len(seen) != 1 {
				t.Errorf("one refusal has %d messages: %q", len(seen), slices.Sorted(maps.Keys(seen)))
			}
		})
	}
}

func TestCode(t *testing.T) {
	for err, want := range map[error]int{nil: http.StatusOK, apierrors.NewUnauthorized("x"): 401, io.EOF: 0} {
		must.Same(t, want, code(err), "the code of", err)
	}
}

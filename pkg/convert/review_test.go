package convert_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/pkg/convert"
	"github.com/corollary-dev/corollary/pkg/webhook"
)

func hostPorts(t testing.TB) *webhook.Handler {
	t.Helper()
	archive := must.Get(txtar.ParseFile("testdata/hostport.txtar")).In(t)
	c, problems := compile(t, archive.Files[0].Data, archive.Files[1].Data)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return &webhook.Handler{Converters: func(kind schema.GroupKind) *convert.Converter {
		if kind.Kind == "CronTab" && kind.Group == "example.com" {
			return c
		}
		return nil
	}}
}

func reviewOf(to string, objects ...string) string {
	return fmt.Sprintf(
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"u-1","desiredAPIVersion":%q,"objects":[%s]}}`,
		to,
		strings.Join(objects, ","),
	)
}

const cronTab = `{"apiVersion":"example.com/v1beta1","kind":"CronTab","metadata":{"name":"a","namespace":"ns","uid":"1","generation":9007199254740993},"spec":{"hostPort":"h:1"}}`

func TestReviews(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(hostPorts(t))
	t.Cleanup(server.Close)
	for _, row := range []struct {
		reason, body string
		code         int
		failure      string
		want         string
	}{
		{"one object", reviewOf("example.com/v1", cronTab), 200, "", `{"host":"h","port":1}`},
		{"none", reviewOf("example.com/v1"), 200, "", ""},
		{"one that has the version", reviewOf("example.com/v1beta1", cronTab), 200, "", `{"hostPort":"h:1"}`},
		{"an unknown version", reviewOf("example.com/v7", cronTab), 200,
			"CronTab ns/a: version v7 of CronTab.example.com is not in the conversion", ""},
		{"an unknown kind", reviewOf("example.com/v1", strings.Replace(cronTab, "CronTab", "Other", 1)), 200,
			"no conversion of Other.example.com is configured", ""},
		{"another group", reviewOf("other.com/v1", cronTab), 200, "no conversion of CronTab.other.com", ""},
		{"one bad object of two", reviewOf("example.com/v1", cronTab, strings.Replace(cronTab, "h:1", "h", 1)), 200, `CronTab ns/a: converting from v1beta1 to v1: set .spec.port`, ""},
		{"an object without metadata", reviewOf("example.com/v1", `{"apiVersion":"example.com/v1beta1","kind":"CronTab","spec":{"hostPort":"h:1"}}`), 200, "metadata is missing", ""},
		{"an object that is a text", reviewOf("example.com/v1", `"x"`), 200, "reading an object", ""},
		{"a version that is none", reviewOf("a/b/c", cronTab), 200, "desiredAPIVersion", ""},
		{"no review", `{"kind":"Pod"}`, 400, "not a ConversionReview", ""},
		{"another version of reviews", strings.Replace(reviewOf("example.com/v1"), "k8s.io/v1", "k8s.io/v1beta1", 1), 400,
			"not a ConversionReview", ""},
		{"no JSON", `{`, 400, "not a ConversionReview", ""},
		{"nothing", ``, 400, "not a ConversionReview", ""},
	} {
		t.Run(row.reason, func(t *testing.T) {
			t.Parallel()
			response, err := http.Post(server.URL, "application/json", strings.NewReader(row.body))
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode != row.code {
				t.Fatalf("%d %s %v", response.StatusCode, text, err)
			}
			if row.code != 200 {
				if !strings.Contains(string(text), row.failure) {
					t.Errorf("answered %s", text)
				}
				return
			}
			var answer apiextensionsv1.ConversionReview
			must.Do(t, json.Unmarshal(text, &answer))
			result := answer.Response.Result
			if answer.Response.UID != "u-1" || (result.Status == "Success") != (row.failure == "") ||
				!strings.Contains(result.Message, row.failure) {
				t.Errorf("answered %s", text)
			}
			if row.want != "" && !bytes.Contains(answer.Response.ConvertedObjects[0].Raw, []byte(`"spec":`+row.want)) {
				t.Errorf("converted to %s", answer.Response.ConvertedObjects[0].Raw)
			}
			if row.want != "" && !bytes.Contains(answer.Response.ConvertedObjects[0].Raw, []byte(`"generation":9007199254740993`)) {
				t.Errorf("metadata is changed: %s", answer.Response.ConvertedObjects[0].Raw)
			}
		})
	}
}

// A list of 10,000 objects and 50 MB is converted in order.
func TestLargeReview(t *testing.T) {
	t.Parallel()
	filling := strings.Repeat("x", 5000)
	objects := make([]string, 10_000)
	for i := range objects {
		objects[i] = strings.Replace(
			strings.Replace(cronTab, `"name":"a"`, fmt.Sprintf(`"name":"a%d","annotations":{"filling":%q}`, i, filling), 1),
			"h:1",
			fmt.Sprintf("h:%d", i+1),
			1,
		)
	}
	recorder, handler := httptest.NewRecorder(), hostPorts(t)
	handler.MaxTime = time.Hour // on a machine that has other things to do
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(reviewOf("example.com/v1", objects...))))
	var answer apiextensionsv1.ConversionReview
	must.Do(t, json.Unmarshal(recorder.Body.Bytes(), &answer))
	if n := len(answer.Response.ConvertedObjects); n != len(objects) {
		t.Fatalf("%d objects: %s", n, answer.Response.Result.Message)
	}
	for i, converted := range answer.Response.ConvertedObjects {
		if !bytes.Contains(converted.Raw, fmt.Appendf(nil, `"port":%d}`, i+1)) ||
			!bytes.Contains(converted.Raw, fmt.Appendf(nil, `"name":"a%d"`, i)) {
			t.Fatalf("object %d is %.300s", i, converted.Raw)
		}
	}
}

func BenchmarkReview(b *testing.B) {
	h := hostPorts(b)
	for _, n := range []int{1, 1000} {
		objects := make([]string, n)
		for i := range objects {
			objects[i] = cronTab
		}
		body := reviewOf("example.com/v1", objects...)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				recorder := httptest.NewRecorder()
				h.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/object")
		})
	}
}

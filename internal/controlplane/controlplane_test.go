package controlplane

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/corollary-dev/corollary/internal/assets"
	"github.com/corollary-dev/corollary/internal/must"
)

func TestDocuments(t *testing.T) {
	tests := []struct {
		text   string
		want   []map[string]any
		reason string
	}{
		{"", nil, "nothing"},
		{"---\n# only a comment\n---\n", nil, "empty documents"},
		{"a: 1\n---\nb: {c: 9007199254740993}\n", []map[string]any{
			{"a": int64(1)}, {"b": map[string]any{"c": int64(9007199254740993)}},
		}, "two documents, whole numbers kept whole"},
	}
	for _, test := range tests {
		documents, err := Documents(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.reason, err)
		}
		var got []map[string]any
		for _, document := range documents {
			got = append(got, document.Object)
		}
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.reason, got, test.want)
		}
	}
	if _, err := Documents("a: 1\n---\nb: [\n"); err == nil || !strings.Contains(err.Error(), "document 2") {
		t.Errorf("the error does not say which document is broken: %v", err)
	}
}

func TestKubeconfig(t *testing.T) {
	config := &rest.Config{
		Host:            "https://127.0.0.1:6443",
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte("ca"), CertData: []byte("cert"), KeyData: []byte("key")},
	}
	text := must.Get(Kubeconfig(config)).In(t)
	got := must.Get(clientcmd.RESTConfigFromKubeConfig(text)).In(t)
	if got.Host != config.Host || !reflect.DeepEqual(got.TLSClientConfig, config.TLSClientConfig) {
		t.Errorf("the kubeconfig connects as %v", got)
	}
}

func TestReadAudit(t *testing.T) {
	if _, err := (&ControlPlane{}).ReadAudit(); !errors.Is(err, ErrNoAudit) {
		t.Errorf("without an audit log: %v", err)
	}
	c := &ControlPlane{audit: filepath.Join(t.TempDir(), "audit.log")}
	log := `{"verb":"get","stage":"ResponseComplete","objectRef":{"resource":"pods","subresource":"log"}}
{"verb":"watch","stage":"ResponseStarted"}
{"verb":"watch","stage":"ResponseComplete"}
{"verb":"patch","sta`
	must.Do(t, os.WriteFile(c.audit, []byte(log), 0o600))
	events := must.Get(c.ReadAudit()).In(t)
	if len(events) != 2 || events[0].ObjectRef.Subresource != "log" || events[1].Verb != "watch" {
		t.Errorf("a watch that ended and a line that is being written give %+v", events)
	}
}

func TestTail(t *testing.T) {
	var all strings.Builder
	output := newTail(&all)
	for range 3 {
		must.Get(output.Write([]byte(strings.Repeat("x", tailSize-1) + "\n"))).In(t)
	}
	if all.Len() != 3*tailSize || len(output.String()) != tailSize {
		t.Errorf("%d bytes were passed on, %d remembered", all.Len(), len(output.String()))
	}
}

func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\necho the disk is on fire >&2\nexit 1\n"
	for _, name := range assets.Names {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(script), 0o700))
	}
	t.Setenv("TMPDIR", t.TempDir())
	_, err := Start(t.Context(), Options{Assets: dir})
	if err == nil || !strings.Contains(err.Error(), "on fire") {
		t.Errorf("the error does not repeat what the component says: %v", err)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	if err != nil || len(left) != 0 {
		t.Errorf("it leaves %v behind, %v", left, err)
	}
}

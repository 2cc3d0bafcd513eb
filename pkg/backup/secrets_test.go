package backup_test

import (
	"errors"
	"path/filepath"
	"testing"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corollary-dev/corollary/internal/bubble"
	"github.com/corollary-dev/corollary/internal/must"
	"github.com/corollary-dev/corollary/internal/testkit"
	"github.com/corollary-dev/corollary/pkg/backup"
	"github.com/corollary-dev/corollary/pkg/backup/archive"
)

func TestSecrets(t *testing.T) {
	t.Parallel()
	bubble.Serve(t)
	ns := testkit.Namespace(t)
	testkit.Apply(t, ns, "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {password: tell-nobody}}")
	b := &backup.Backup{Client: testkit.Dynamic(t), Kinds: []backup.Selection{{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"},
		Resource: "secrets", Namespaced: true, Namespaces: []string{ns}, Choices: []backup.Choice{{}}}}}
	path := filepath.Join(t.TempDir(), "backup")
	if _, _, err := b.Run(t.Context(), path); err == nil {
		t.Error("it was written without a recipient")
	}
	identity := must.Get(age.GenerateX25519Identity()).In(t)
	b.Recipients = []age.Recipient{identity.Recipient()}
	if _, _, err := b.Run(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if text := contentOf(t, path); len(testkit.Leaked(text, []byte("tell-nobody"))) > 0 {
		t.Error("the Secret is in clear")
	}
	testkit.Delete(t, secrets, ns, "s")
	w := &world{t: t}
	r := w.restore(testkit.Config(t), path, backup.Fail)
	plan, result, err := run(t.Context(), r)
	if err != nil || plan.Kinds[0].Unreadable != 1 || result.Created > 0 {
		t.Errorf("without a key: %+v: %v", plan, err)
	}
	if r.Archive, err = archive.Open(path, []age.Identity{identity}); err != nil {
		t.Fatal(err)
	}
	if _, result, err = run(t.Context(), r); err != nil || result.Finished != 1 {
		t.Errorf("with the key: %+v: %v", result, err)
	}
	testkit.Patch(t, secrets, ns, "s", "test", `{"data": {"password": "b3RoZXI="}}`)
	plan, _, err = run(t.Context(), r)
	if !errors.Is(err, backup.ErrConflict) || plan.Differences[0].Text != ".data.password differs" {
		t.Errorf("a difference: %+v: %v", plan, err)
	}
}

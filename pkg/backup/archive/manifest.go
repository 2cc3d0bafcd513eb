package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	manifestName = "manifest.json"
	// Format is the version of how a backup is stored.
	Format = 1
)

// Manifest says what a backup holds.
type Manifest struct {
	Format    int        `json:"format"`
	Taken     string     `json:"taken"` // RFC 3339
	Operators []Operator `json:"operators,omitempty"`
	Kinds     []Kind     `json:"kinds"`
	Files     []File     `json:"files"`
	// SHA256 is that of the manifest without this field.
	SHA256 string `json:"sha256"`
}

// Operator is what a restore needs to know of an operator that watches a kind.
type Operator struct {
	Name string `json:"name"`
	// Upstream is the resource that it watches: RESOURCE.GROUP.
	Upstream string `json:"upstream"`
	// Pause is the annotation with which it leaves an upstream alone; empty if it has none.
	Pause string `json:"pause,omitempty"`
	// Owners are the annotations that hold NAMESPACE/NAME/UID of a downstream's owner: the current one first, as in the
	// lists below, then that of conventions.previous.
	Owners        []string `json:"owners,omitempty"`
	FieldManagers []string `json:"fieldManagers,omitempty"`
	Finalizers    []string `json:"finalizers,omitempty"` // of upstreams
	Hashes        []Key    `json:"hashes,omitempty"`
	// Labels are those that all downstreams have.
	Labels map[string]string `json:"labels,omitempty"`
}

// Kind is a kind in a backup, with all its objects as they were at one resourceVersion.
type Kind struct {
	APIVersion      string `json:"apiVersion"`
	Kind            string `json:"kind"`
	Resource        string `json:"resource"`
	Namespaced      bool   `json:"namespaced"`
	HasStatus       bool   `json:"hasStatus"`
	Definition      string `json:"definition,omitempty"` // a file
	ResourceVersion string `json:"resourceVersion"`
	Objects         int    `json:"objects"`
	// Terminating is how many objects are left out, since they were being deleted.
	Terminating int `json:"terminating,omitempty"`
}

// Name is RESOURCE.GROUP, as a CustomResourceDefinition is named.
func (k *Kind) Name() string { return k.GVR().GroupResource().String() }

// GVR is the resource that the objects were read from.
func (k *Kind) GVR() schema.GroupVersionResource {
	gv, _ := schema.ParseGroupVersion(k.APIVersion)
	return gv.WithResource(k.Resource)
}

// GVK is the kind in the version that they were read in.
func (k *Kind) GVK() schema.GroupVersionKind { return k.GVR().GroupVersion().WithKind(k.Kind) }

// IsSecret reports whether the objects must neither be written in clear nor be printed.
func IsSecret(gr schema.GroupResource) bool { return gr == schema.GroupResource{Resource: "secrets"} }

// File is a file of a backup.
type File struct {
	Path      string `json:"path"`
	SHA256    string `json:"sha256"`
	Kind      string `json:"kind,omitempty"` // Kind.Name
	Namespace string `json:"namespace,omitempty"`
	Objects   int    `json:"objects,omitempty"`
	Encrypted bool   `json:"encrypted,omitempty"`
}

// Resource is the resource of a kind in the backup.
func (m *Manifest) Resource(apiVersion, kind string) schema.GroupResource {
	for _, k := range m.Kinds {
		if k.GVR().Group == schema.FromAPIVersionAndKind(apiVersion, kind).Group && k.Kind == kind {
			return k.GVR().GroupResource()
		}
	}
	return schema.GroupResource{}
}

func (m *Manifest) digest() (string, error) {
	clone := *m
	clone.SHA256 = ""
	text, err := json.Marshal(clone)
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), err
}

func (m *Manifest) Write(dir string) (err error) {
	if m.SHA256, err = m.digest(); err != nil {
		return err
	}
	text, err := m.text()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, manifestName), text, 0o600)
}

func (m *Manifest) text() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	return append(text, '\n'), err
}

// readManifest reads the manifest of a directory, and nothing else of it.
func readManifest(dir string) (*Manifest, error) {
	name := filepath.Join(dir, manifestName)
	if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() { // reading a pipe would never end
		return nil, fmt.Errorf("%s is not a regular file: use another backup", manifestName)
	} else if err == nil && info.Size() > maxObject {
		return nil, fmt.Errorf("%s has %d MiB, and a manifest has %d at most: use another backup", manifestName,
			info.Size()>>20, maxObject>>20)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("it is not a complete backup: %s: %w", manifestName, withoutPath(err))
	}
	m := &Manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("%s is damaged: %w", manifestName, err)
	}
	if m.Format != Format {
		return nil, fmt.Errorf(
			"%s has format %d, and this version of the command reads format %d: use the version that wrote it",
			manifestName, m.Format, Format)
	}
	if sum, err := m.digest(); err != nil || sum != m.SHA256 {
		return nil, fmt.Errorf("%s was altered: its checksum is %s and not %s: use another backup",
			manifestName, sum, m.SHA256)
	}
	if same, err := m.text(); err != nil || !bytes.Equal(same, text) { // keys that are not read are not in the digest
		return nil, fmt.Errorf("%s was altered: it is not as it was written: use another backup", manifestName)
	}
	return m, nil
}

// sameContent reports whether two backups hold the same: only times, resourceVersions and such differ.
func (m *Manifest) sameContent(other *Manifest) bool {
	a, b := *m, *other
	a.Kinds, b.Kinds = slices.Clone(a.Kinds), slices.Clone(b.Kinds)
	for _, copied := range []*Manifest{&a, &b} {
		copied.Taken = ""
		for i := range copied.Kinds {
			copied.Kinds[i].ResourceVersion, copied.Kinds[i].Terminating = "", 0
		}
	}
	left, errLeft := a.digest()
	right, errRight := b.digest()
	return errLeft == nil && errRight == nil && left == right
}

// belongs returns an error where an object is not of the kind and namespace that its file is listed with.
func (m *Manifest) belongs(f *File, u *unstructured.Unstructured) error {
	apiVersion, kind, namespaced := "apiextensions.k8s.io/v1", "CustomResourceDefinition", false
	if i := slices.IndexFunc(m.Kinds, func(k Kind) bool { return k.Name() == f.Kind }); i >= 0 {
		apiVersion, kind, namespaced = m.Kinds[i].APIVersion, m.Kinds[i].Kind, m.Kinds[i].Namespaced
	}
	switch namespace := u.GetNamespace(); {
	case u.GetAPIVersion() != apiVersion || u.GetKind() != kind:
		return fmt.Errorf("it has an object of %q %q, and the manifest says %s %s", u.GetAPIVersion(),
			u.GetKind(), apiVersion, kind)
	case namespace != f.Namespace || (namespace != "") != namespaced:
		return fmt.Errorf("it has an object of namespace %q, and the manifest says %q", namespace, f.Namespace)
	case u.GetName() == "" || len(content.IsPathSegmentName(u.GetName())) > 0 ||
		strings.ContainsFunc(u.GetName(), unicode.IsControl):
		return fmt.Errorf("%q is not the name of an object", u.GetName())
	case f.Kind != "" && u.GetUID() == "":
		return fmt.Errorf("%s has no uid", u.GetName())
	}
	return nil
}

// Definition is the file of a kind's CustomResourceDefinition.
func (m *Manifest) Definition(k *Kind) (*File, error) {
	for i := range m.Files {
		if f := &m.Files[i]; f.Path == k.Definition && f.Kind == "" {
			return f, nil
		}
	}
	return nil, fmt.Errorf(
		"manifest.json was altered: the CustomResourceDefinition of %q is not in the list of files: use another backup",
		k.Name())
}

// checkTwice returns an error where a kind, a file, or a kind's namespace is listed twice.
func (m *Manifest) checkTwice() error {
	listed := map[string]bool{}
	twice := func(what string) error {
		if listed[what] {
			return fmt.Errorf("manifest.json was altered: it lists %s twice: use another backup", what)
		}
		listed[what] = true
		return nil
	}
	for i := range m.Kinds {
		if err := twice(fmt.Sprintf("kind %q", m.Kinds[i].Name())); err != nil {
			return err
		}
	}
	for _, f := range m.Files {
		if err := twice(fmt.Sprintf("file %q", f.Path)); err != nil {
			return err
		}
		if f.Kind == "" {
			continue
		}
		if err := twice(fmt.Sprintf("%q of namespace %q", f.Kind, f.Namespace)); err != nil {
			return err
		}
	}
	return nil
}

// verify compares every file with its checksum.
func (m *Manifest) verify(dir string) error {
	if err := m.checkTwice(); err != nil {
		return err
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(f.Path) {
			return fmt.Errorf("manifest.json names a file outside of the backup: %q", f.Path)
		}
		if info, err := os.Lstat(filepath.Join(dir, f.Path)); err == nil && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file: use another backup", f.Path)
		}
		sum, err := checksum(filepath.Join(dir, f.Path))
		if err != nil {
			return fmt.Errorf("the backup is not complete: %s: %w", f.Path, withoutPath(err))
		}
		if sum != f.SHA256 {
			return fmt.Errorf("%s was altered or truncated: its checksum is %s and not %s: use another backup",
				f.Path, sum, f.SHA256)
		}
	}
	return m.checkUnlisted(dir)
}

// checkUnlisted returns an error where the directory has a file that the manifest does not list.
func (m *Manifest) checkUnlisted(dir string) error {
	listed := map[string]bool{manifestName: true}
	for _, f := range m.Files {
		listed[f.Path] = true
	}
	return filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		switch name = filepath.ToSlash(name); {
		case err != nil:
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is not a regular file: remove it", name)
		case !listed[name]:
			return fmt.Errorf("%s is not part of the backup: remove it", name)
		}
		return err
	})
}

// withoutPath is an error of a file without its name: archives are unpacked to a directory that nobody knows.
func withoutPath(err error) error {
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}

func checksum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// isFile reports whether a path is a .tar.zst file, not a directory.
func isFile(path string) bool { return strings.HasSuffix(path, ".tar.zst") }

// Key is where a downstream has its hash: one of the two.
type Key struct {
	Annotation string `json:"annotation,omitempty"`
	Label      string `json:"label,omitempty"`
}

package archive

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Writer writes the files of a backup into a directory, one after the other.
type Writer struct {
	Dir        string
	Recipients []age.Recipient
	Files      []File
	open       *openFile
}

type openFile struct {
	File
	out  *os.File
	buf  *bufio.Writer
	sum  hash.Hash
	text io.WriteCloser // age's, or nothing but the buffer
}

// Object appends an object to the file of its kind and namespace. Objects come sorted by namespace.
func (w *Writer) Object(k *Kind, u *unstructured.Unstructured) error {
	name := path.Join("objects", k.Name(), "cluster.json")
	if k.Namespaced {
		name = path.Join("objects", k.Name(), "namespaces", u.GetNamespace()+".json")
	}
	encrypted := IsSecret(k.GVR().GroupResource())
	if encrypted {
		name += ".age"
	}
	if w.open == nil || w.open.Path != name {
		if err := w.begin(File{Path: name, Kind: k.Name(), Namespace: u.GetNamespace(), Encrypted: encrypted}); err != nil {
			return err
		}
	}
	tidy(u)
	w.open.Objects++
	return encode(w.open.text, u)
}

// Definition writes a CustomResourceDefinition.
func (w *Writer) Definition(u *unstructured.Unstructured) (string, error) {
	tidy(u)
	unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	unstructured.RemoveNestedField(u.Object, "status")
	name := path.Join("definitions", u.GetName()+".json")
	if err := w.begin(File{Path: name}); err != nil {
		return "", err
	}
	return name, encode(w.open.text, u)
}

func encode(out io.Writer, u *unstructured.Unstructured) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(u.Object)
}

func (w *Writer) begin(f File) error {
	if err := w.End(); err != nil {
		return err
	}
	name := filepath.Join(w.Dir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	// EXCL: the objects of a namespace come together
	out, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing the objects of one namespace: %w", err)
	}
	open := &openFile{File: f, out: out, sum: sha256.New()}
	open.buf = bufio.NewWriterSize(io.MultiWriter(out, open.sum), 1<<16)
	open.text = unclosed{open.buf}
	if f.Encrypted {
		if open.text, err = age.Encrypt(open.buf, w.Recipients...); err != nil {
			return errors.Join(fmt.Errorf("encrypting %s: %w", f.Path, err), out.Close())
		}
	}
	w.open = open
	return nil
}

// unclosed does nothing where age would write its end.
type unclosed struct{ io.Writer }

// Close does nothing.
func (unclosed) Close() error { return nil }

// End finishes the file that is open.
func (w *Writer) End() error {
	open := w.open
	if open == nil {
		return nil
	}
	w.open = nil
	err := errors.Join(open.text.Close(), open.buf.Flush(), open.out.Sync(), open.out.Close())
	open.SHA256 = hex.EncodeToString(open.sum.Sum(nil))
	w.Files = append(w.Files, open.File)
	return err
}

// Discard removes the objects of a kind, which is listed again.
func (w *Writer) Discard(k *Kind) error {
	err := w.End()
	w.Files = slices.DeleteFunc(w.Files, func(f File) bool { return f.Kind == k.Name() })
	return errors.Join(err, os.RemoveAll(filepath.Join(w.Dir, "objects", k.Name())))
}

// tidy removes what changes though the object does not: resourceVersion, and the times and order of managedFields.
func tidy(u *unstructured.Unstructured) {
	unstructured.RemoveNestedField(u.Object, "metadata", "resourceVersion")
	entries, ok, _ := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
	if !ok {
		return
	}
	key := func(v any) string {
		entry, _ := v.(map[string]any)
		return fmt.Sprint(entry["manager"], "\n", entry["operation"], "\n", entry["subresource"], "\n", entry["apiVersion"])
	}
	for _, v := range entries {
		if entry, ok := v.(map[string]any); ok {
			delete(entry, "time")
		}
	}
	slices.SortStableFunc(entries, func(a, b any) int { return strings.Compare(key(a), key(b)) })
	_ = unstructured.SetNestedSlice(u.Object, entries, "metadata", "managedFields")
}

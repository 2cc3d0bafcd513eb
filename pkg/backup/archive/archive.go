// Package archive reads and writes the files of a backup: a directory or a .tar.zst file with a manifest, which has the
// checksum of every file. Secrets are encrypted by age. It makes no requests.
package archive

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Archive is a backup to be read, every file of which has its checksum.
type Archive struct {
	Manifest   *Manifest
	dir        string
	temporary  bool
	identities []age.Identity
}

// Open reads a directory or a .tar.zst file, which is unpacked into a temporary directory. A truncated or altered
// backup is an error.
func Open(path string, identities []age.Identity) (*Archive, error) {
	a := &Archive{dir: path, identities: identities}
	if err := a.open(path); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *Archive) open(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if !info.Mode().IsRegular() { // opening a pipe would wait
			return fmt.Errorf("%s is not a regular file or a directory: name one", path)
		}
		if a.dir, err = os.MkdirTemp("", "restore-"); err != nil {
			return err
		}
		a.temporary = true
		if err := unpack(path, a.dir); err != nil {
			return fmt.Errorf("%s is damaged, truncated, or not a backup: %w", path, err)
		}
	}
	if a.Manifest, err = readManifest(a.dir); err == nil {
		err = a.Manifest.verify(a.dir)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// Close removes what was unpacked.
func (a *Archive) Close() error {
	if !a.temporary {
		return nil
	}
	return os.RemoveAll(a.dir)
}

// Readable reports whether a file can be read: encrypted ones need an identity.
func (a *Archive) Readable(f *File) bool { return !f.Encrypted || len(a.identities) > 0 }

// Definition reads the CustomResourceDefinition of a kind.
func (a *Archive) Definition(k *Kind) (*unstructured.Unstructured, error) {
	f, err := a.Manifest.Definition(k)
	if err != nil {
		return nil, err
	}
	var found *unstructured.Unstructured
	if err := a.Each(f, func(u *unstructured.Unstructured) error { found = u; return nil }); err != nil {
		return nil, err
	}
	if found == nil || found.GetName() != k.Name() {
		return nil, fmt.Errorf("%s was altered: it is not CustomResourceDefinition %s: use another backup", f.Path, k.Name())
	}
	return found, nil
}

// Each visits the objects of a file, one at a time.
func (a *Archive) Each(f *File, visit func(*unstructured.Unstructured) error) error {
	file, err := os.Open(filepath.Join(a.dir, filepath.FromSlash(f.Path)))
	if err != nil {
		return err
	}
	defer file.Close()
	in := io.Reader(file)
	if f.Encrypted {
		if in, err = age.Decrypt(file, a.identities...); err != nil {
			return fmt.Errorf("decrypting %s: %w", f.Path, err)
		}
	}
	bounded := &boundedReader{in: in}
	decoder := json.NewDecoder(bounded)
	names := map[string]bool{}
	for {
		bounded.left = maxObject
		var text json.RawMessage
		if err := decoder.Decode(&text); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading %s: %w", f.Path, err)
		}
		u := &unstructured.Unstructured{}
		if err := u.UnmarshalJSON(text); err != nil {
			return fmt.Errorf("reading %s: %w", f.Path, err)
		}
		if err := a.Manifest.belongs(f, u); err != nil {
			return fmt.Errorf("%s was altered: %w: use another backup", f.Path, err)
		}
		if names[u.GetName()] {
			return fmt.Errorf("%s was altered: it has %s twice: use another backup", f.Path, u.GetName())
		}
		names[u.GetName()] = true
		if err := visit(u); err != nil {
			return err
		}
	}
}

// maxObject bounds the memory that one object of an archive takes: an API server takes a few megabytes.
const maxObject = 64 << 20

// boundedReader reads no more than is left.
type boundedReader struct {
	in   io.Reader
	left int
}

// Read reads, as io.Reader says, and returns an error where nothing is left.
func (r *boundedReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, fmt.Errorf("an object has more than %d MiB, which no API server takes", maxObject>>20)
	}
	n, err := r.in.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

// Replace puts a finished directory where the backup belongs. It returns false where an equal backup is there already,
// which stays as it is, its manifest too.
func Replace(from, to string, m *Manifest) (bool, error) {
	if isFile(to) {
		return replaceFile(from, to, m)
	}
	_, err := os.Stat(to)
	if errors.Is(err, fs.ErrNotExist) {
		return true, os.Rename(from, to)
	}
	entries, err := os.ReadDir(to)
	if err != nil {
		return false, err
	}
	old := from + ".old" // a name that nothing else has: not even what was left by a backup that was killed here
	if len(entries) > 0 {
		before, err := readManifest(to)
		if err != nil {
			return false, fmt.Errorf("%s: %w", to, err)
		}
		if err := before.verify(to); err == nil && before.sameContent(m) {
			return false, nil
		}
	}
	err = os.Rename(to, old)
	if errors.Is(err, syscall.EBUSY) {
		return false, fmt.Errorf("%w: if a volume is mounted there, name a directory in it, such as %s", err,
			filepath.Join(to, "backup"))
	}
	if err := errors.Join(err, os.Rename(from, to)); err != nil {
		return false, err
	}
	return true, os.RemoveAll(old)
}

func replaceFile(from, to string, m *Manifest) (bool, error) {
	if before, err := Open(to, nil); err == nil {
		same := before.Manifest.sameContent(m)
		if err := before.Close(); err != nil || same {
			return false, err
		}
	}
	temporary := from + ".tar.zst"
	if err := pack(from, temporary, m); err != nil {
		return false, errors.Join(err, os.Remove(temporary))
	}
	return true, os.Rename(temporary, to)
}

// abandonedAfter is how old the temporary directory of a backup that was killed must be: until then it may still be
// written.
const abandonedAfter = 24 * time.Hour

// RemoveAbandoned removes what backups left that were killed: a volume would fill.
func RemoveAbandoned(dir, prefix string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), prefix)
		number, _, _ = strings.Cut(number, ".") // of replace: .old, .tar.zst
		if _, err := strconv.ParseUint(number, 10, 64); !ok || err != nil {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > abandonedAfter {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckOutput refuses to overwrite what is not a backup.
func CheckOutput(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if ext := filepath.Ext(path); !isFile(path) && slices.Contains([]string{".tar", ".tgz", ".gz", ".zst", ".zip"}, ext) {
			return fmt.Errorf("%s is not supported for %s: write NAME.tar.zst, or the name of a directory", ext, path)
		}
		return nil
	case err != nil:
		return err
	case isFile(path) && info.IsDir():
		return fmt.Errorf("%s is a directory", path)
	case isFile(path):
		return checkArchive(path, info)
	case !info.IsDir():
		return fmt.Errorf("%s is a file: a backup is written to a directory or to a file NAME.tar.zst", path)
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) == 0 {
		return err
	}
	for _, e := range entries {
		if !slices.Contains([]string{manifestName, "objects", "definitions"}, e.Name()) {
			return fmt.Errorf("%s has %s, which is not part of a backup: name another directory, such as %s", path, e.Name(),
				filepath.Join(path, "backup"))
		}
	}
	m, err := readManifest(path)
	if err == nil {
		err = m.checkUnlisted(path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// checkArchive refuses a file that does not begin as pack begins it; an empty one is a place for a backup.
func checkArchive(path string, info fs.FileInfo) error {
	if info.Mode().IsRegular() && info.Size() == 0 {
		return nil
	}
	err := errors.New("it is not a regular file")
	if info.Mode().IsRegular() { // opening a pipe would wait
		err = beginsWithManifest(path)
	}
	if err != nil {
		return fmt.Errorf("%s exists and is not a backup: name another file: %w", path, err)
	}
	return nil
}

// newExpander bounds what a file can make it hold in memory.
func newExpander(in io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxObject))
}

func beginsWithManifest(path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	expander, err := newExpander(in)
	if err != nil {
		return err
	}
	defer expander.Close()
	header, err := tar.NewReader(expander).Next()
	if err == nil && header.Name != manifestName {
		err = fmt.Errorf("it begins with %q", header.Name)
	}
	return err
}

func pack(dir, name string, m *Manifest) (err error) {
	out, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	compressor, err := zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressor)
	if err := packFile(archive, dir, manifestName); err != nil {
		return err
	}
	for _, f := range m.Files {
		if err := packFile(archive, dir, f.Path); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressor.Close(), out.Sync())
}

func packFile(archive *tar.Writer, dir, name string) error {
	in, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	err = archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: info.Size(),
		Typeflag: tar.TypeReg})
	if err != nil {
		return err
	}
	_, err = io.Copy(archive, in)
	return err
}

func unpack(name, dir string) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	expander, err := newExpander(in)
	if err != nil {
		return err
	}
	defer expander.Close()
	archive := tar.NewReader(expander)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			more, err := io.Copy(io.Discard, expander) // its checksum comes last
			if err == nil && more > 0 {
				err = errors.New("something follows the end of the archive")
			}
			return err
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg || !filepath.IsLocal(header.Name) {
			return fmt.Errorf("%q is not a file of a backup", header.Name)
		}
		err = unpackFile(archive, filepath.Join(dir, filepath.FromSlash(header.Name)))
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("it has %q twice", header.Name)
		}
		if err != nil {
			return fmt.Errorf("unpacking %q: %w", header.Name, withoutPath(err))
		}
	}
}

func unpackFile(in io.Reader, name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

package informers

import (
	"bytes"
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// texts compresses the JSON of cached objects. Objects of one kind are alike, so that each is compressed by means of another one of
// its kind: what is left of it is little more than what only it has.
type texts struct {
	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*kindTexts
}

// kindTexts are those of a kind.
type kindTexts struct {
	made int
	by   *dictionary
}

// text is the compressed JSON of an object.
type text struct {
	by         *dictionary
	compressed []byte
}

// dictionary is the JSON of an object by which others are compressed. Encoders and decoders take hundreds of kilobytes, so they exist
// while they are used.
type dictionary struct {
	json     []byte
	encoders sync.Pool // of *encoder
	decoders sync.Pool // of *decoder
}

// encoder compresses texts, one at a time, into its buffer.
type encoder struct {
	*zstd.Encoder
	buffer
}

// decoder expands texts in the same way.
type decoder struct {
	*zstd.Decoder
	buffer
}

// buffer is what was returned last, to be used again.
type buffer []byte

func (b *buffer) keep(last []byte) {
	if *b = last[:0]; cap(last) > maxBuffer {
		*b = nil
	}
}

const (
	// maxDictionary bounds the JSON in a dictionary, in bytes. More does not make the others much smaller.
	maxDictionary = 16 << 10
	// fewTexts of a kind have no dictionary.
	fewTexts = 64
	// window is how far back a compressed text can refer, in bytes. An encoder takes memory in proportion to it.
	window = 64 << 10
)

// compress compresses the JSON of an object of a kind.
func (t *texts) compress(kind schema.GroupVersionKind, json []byte) text {
	d := t.dictionary(kind, json)
	e := d.encoders.Get().(*encoder)
	defer d.encoders.Put(e)
	compressed := e.EncodeAll(json, e.buffer)
	e.keep(compressed)
	return text{d, bytes.Clone(compressed)}
}

// dictionary is the one for an object of a kind. Few objects are not worth one. It is replaced by an object that is much longer, and thus
// probably has more that others have, too: the first ones may be without a status.
func (t *texts) dictionary(kind schema.GroupVersionKind, json []byte) *dictionary {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[kind]
	if k == nil {
		if t.kinds == nil {
			t.kinds = map[schema.GroupVersionKind]*kindTexts{}
		}
		k = &kindTexts{by: noDictionary}
		t.kinds[kind] = k
	}
	k.made++
	if has := len(k.by.json); k.made > fewTexts && has < maxDictionary && len(json) > has*5/4 {
		k.by = newDictionary(json[:min(len(json), maxDictionary)])
	}
	return k.by
}

// noDictionary compresses each object by itself.
var noDictionary = newDictionary(nil)

func newDictionary(json []byte) *dictionary {
	const id = 1 // any but 0
	d := &dictionary{json: bytes.Clone(json)}
	encoding := []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window),
		zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false)}
	decoding := []zstd.DOption{zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true)}
	if len(json) > 0 {
		encoding, decoding = append(encoding, zstd.WithEncoderDictRaw(id, d.json)), append(decoding, zstd.WithDecoderDictRaw(id, d.json))
	}
	d.encoders.New = func() any { return &encoder{Encoder: must(zstd.NewWriter(nil, encoding...))} }
	d.decoders.New = func() any { return &decoder{Decoder: must(zstd.NewReader(nil, decoding...))} }
	return d
}

func must[T any](made T, err error) T {
	if err != nil {
		panic("preparing a compression: " + err.Error()) // the options are constants, and any bytes are a dictionary
	}
	return made
}

// object reads the JSON.
func (t text) object() (map[string]any, error) {
	if t.by == nil {
		return nil, errors.New("nothing of the object is kept")
	}
	d := t.by.decoders.Get().(*decoder)
	defer t.by.decoders.Put(d)
	plain, err := d.DecodeAll(t.compressed, d.buffer)
	d.keep(plain)
	if err != nil {
		return nil, err
	}
	return decodeObject(plain)
}

// maxBuffer bounds a buffer that is kept, in bytes.
const maxBuffer = 64 << 10

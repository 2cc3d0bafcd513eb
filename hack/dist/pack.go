package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// file is one file of an archive.
type file struct {
	name string
	mode fs.FileMode
	data []byte
}

// tarGz packs the files, each with the same time and without an owner.
func tarGz(files []file, date time.Time) ([]byte, error) {
	var packed bytes.Buffer
	zipper := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipper)
	for _, f := range files {
		header := &tar.Header{Name: f.name, Mode: int64(f.mode), Size: int64(len(f.data)),
			ModTime: date, Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
		if _, err := archive.Write(f.data); err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
	}
	if err := errors.Join(archive.Close(), zipper.Close()); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return packed.Bytes(), nil
}

// zipped is tarGz for Windows, as .zip.
func zipped(files []file, date time.Time) ([]byte, error) {
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	for _, f := range files {
		header := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: date}
		header.SetMode(f.mode)
		writer, err := archive.CreateHeader(header)
		if err == nil {
			_, err = writer.Write(f.data)
		}
		if err != nil {
			return nil, fmt.Errorf("packing %s: %w", f.name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return nil, fmt.Errorf("packing: %w", err)
	}
	return packed.Bytes(), nil
}

// Archive reads the archive of cases as a project that vendors it does: `archive FILE`. It checks the hash of each
// file, and compares the text that arrow-go prints of each case of the kind decode with that of the expected bytes.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/apache/arrow-go/v18/parquet/variant"
)

type encoded struct{ Metadata, Value string }

type manifest struct {
	Version string
	Files   map[string]string
	Cases   []struct {
		ID, Kind string
		Files    map[string]string
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// unpack returns the files of the archive by their paths below its top folder.
func unpack(path string) map[string][]byte {
	files := map[string][]byte{}
	archive := tar.NewReader(must(gzip.NewReader(must(os.Open(path)))))
	for header, err := archive.Next(); err != io.EOF; header, err = archive.Next() {
		_, name, _ := strings.Cut(must(header, err).Name, "/")
		files[name] = must(io.ReadAll(archive))
	}
	return files
}

// text returns the JSON text of a value, or the error of arrow-go, which panics for some values.
func text(parts encoded) (result string, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%v", cause)
		}
	}()
	metadata, value := must(hex.DecodeString(parts.Metadata)), must(hex.DecodeString(parts.Value))
	return string(must(json.Marshal(must(variant.New(metadata, value))))), nil
}

func main() {
	files := unpack(os.Args[1])
	var list manifest
	must(0, json.Unmarshal(files["manifest.json"], &list))
	expected := map[string][]json.RawMessage{}
	for lines := json.NewDecoder(bytes.NewReader(files["expected.jsonl"])); lines.More(); {
		var line struct {
			ID   string
			Rows []json.RawMessage
		}
		must(0, lines.Decode(&line))
		expected[line.ID] = line.Rows
	}
	hashes, decoded := list.Files, map[string][]string{}
	for _, each := range list.Cases {
		for name, hash := range each.Files {
			hashes["cases/"+each.ID+"/"+name] = hash
		}
		if rows := expected[each.ID]; each.Kind == "decode" && rows != nil {
			var parts struct{ Input, Row encoded }
			must(0, json.Unmarshal(files["cases/"+each.ID+"/case.json"], &parts))
			must(0, json.Unmarshal(rows[0], &parts.Row))
			outcome := "different"
			if got, err := text(parts.Input); err != nil {
				outcome = "failed"
			} else if wanted, err := text(parts.Row); err == nil && got == wanted {
				outcome = "equal"
			}
			decoded[outcome] = append(decoded[outcome], each.ID)
		}
	}
	damaged := []string{}
	for name, hash := range hashes {
		if hash != fmt.Sprintf("%x", sha256.Sum256(files[name])) {
			damaged = append(damaged, name)
		}
	}
	report := map[string]any{"cases": len(list.Cases), "damaged": damaged, "decoded": decoded, "version": list.Version}
	report["unlisted"] = len(files) - len(hashes) - 1 // the manifest does not list itself
	must(0, json.NewEncoder(os.Stdout).Encode(report))
}

// Notebooks as files.

/** A notebook file with these cells of Python. */
export function notebook(...cells) {
  const code = cells.map((source) => ({ cell_type: "code", execution_count: null, metadata: {}, outputs: [], source }));
  const metadata = { language_info: { name: "python" } };
  return JSON.stringify({ cells: code, metadata, nbformat: 4, nbformat_minor: 5 });
}

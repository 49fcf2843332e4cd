-- Run by test_neovim.py: `nvim --clean --headless -l neovim.lua FILE PYTHON`. Prints what Neovim shows of FILE as one line of JSON.
local file, python = arg[1], arg[2]
local seen = {}

local function wait_for(what, condition)
  if not vim.wait(60000, condition, 20) then
    error("waited in vain for " .. what)
  end
end

vim.cmd.edit(file)
local buffer = vim.api.nvim_get_current_buf()
vim.bo[buffer].filetype = "python"
local id = assert(vim.lsp.start({
  name = "shapelens",
  cmd = { python, "-m", "shapelens.lsp", "--interpreter", python },
  root_dir = vim.fs.dirname(file),
}))
vim.lsp.inlay_hint.enable(true, { bufnr = buffer })

wait_for("diagnostics", function() return #vim.diagnostic.get(buffer) > 0 end)
seen.diagnostics = vim.tbl_map(function(each)
  return {
    code = each.code,
    message = each.message,
    text = vim.api.nvim_buf_get_text(buffer, each.lnum, each.col, each.end_lnum, each.end_col, {})[1],
  }
end, vim.diagnostic.get(buffer))

-- Named dims come a moment after the findings; the text is what is rendered, not what was answered.
local function rendered()
  local namespace = vim.api.nvim_get_namespaces()["nvim.lsp.inlayhint"]
  local hints = {}
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(buffer, namespace or -1, 0, -1, { details = true })) do
    local text = ""
    for _, chunk in ipairs(mark[4].virt_text or {}) do
      text = text .. chunk[1]
    end
    table.insert(hints, vim.trim(text))
  end
  return hints
end
-- Neovim 0.11 forgets what it has drawn when it is told to ask again, not when the answer comes: what it draws in between stays without hints
-- until the text changes. So they are asked for anew where they are not there after a while, each time a longer one.
local asked, patience = vim.uv.now(), 250 -- ms
wait_for("hints", function()
  vim.cmd.redraw()
  if vim.uv.now() - asked > patience then
    vim.lsp.inlay_hint.enable(false, { bufnr = buffer })
    vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
    asked, patience = vim.uv.now(), 2 * patience
  end
  return vim.tbl_contains(rendered(), "→ [B, 400]")
end)
seen.hints = rendered()

local function ask(method, extra)
  local client = assert(vim.lsp.get_client_by_id(id))
  local params = vim.tbl_extend("force", vim.lsp.util.make_position_params(0, client.offset_encoding), extra or {})
  return assert(client:request_sync(method, params, 20000, buffer)).result
end

vim.fn.search("self.conv1 = ")
vim.cmd.normal("6l")
seen.hover = ask("textDocument/hover").contents.value
seen.lens = ask("textDocument/codeLens")[1].command.title

local finding = vim.diagnostic.get(buffer)[1]
vim.api.nvim_win_set_cursor(0, { finding.lnum + 1, finding.col })
vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.isPreferred end })
wait_for("the fix", function() return #vim.diagnostic.get(buffer) == 0 end)
seen.fixed = vim.api.nvim_buf_get_lines(buffer, finding.lnum, finding.lnum + 1, false)[1]

seen.encoding = vim.lsp.get_client_by_id(id).offset_encoding
seen.messages = vim.fn.execute("messages")
vim.lsp.stop_client(id)
wait_for("the end of the server", function() return vim.lsp.get_client_by_id(id) == nil end)
io.stdout:write(vim.json.encode(seen) .. "\n")

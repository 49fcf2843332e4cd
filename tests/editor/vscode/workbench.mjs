// VS Code's window as a person sees it: text with hints, squiggles, hovers, lenses, menus, the status bar.
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { AGAIN, PATIENCE } from "./patience.mjs";

/**
 * Asks `probe` until it gives something that is neither false nor empty, and hands that back.
 * @throws with what was last seen, when that takes longer than `patience` ms.
 */
export async function eventually(what, probe, patience = PATIENCE, seen = () => "") {
  const deadline = Date.now() + patience;
  let problem = "";
  for (;;) {
    try {
      const value = await probe();
      if (value !== false && value !== undefined && value !== null) return value;
      problem = "";
    } catch (error) {
      problem = `\n${error.message}`;
    }
    if (Date.now() > deadline) throw new Error(`not within ${patience / 1000} s: ${what}${problem}\n${await seen()}`);
    await sleep(50);
  }
}

export class Workbench {
  constructor(page) {
    this.page = page;
    // Selector of what text is looked for in: the cells of a notebook lie outside of the group that shows it.
    this.pane = ".editor-group-container.active .editor-instance";
  }

  /** Opens an address of CodeServer.url() and waits for the window and, if a file is named, for its text and for the extension. */
  static async open(context, url, file) {
    const page = await context.newPage();
    const workbench = new Workbench(page);
    await page.goto(url, { waitUntil: "commit" }); // What is waited for below says when it is loaded.
    await page.locator(".monaco-workbench").waitFor();
    if (file) {
      await page.locator(`.tab.active[data-resource-name="${file}"]`).waitFor();
      await page.locator(".editor-instance .view-line").first().waitFor();
      // VS Code starts extensions long after it has shown the file, on a busy machine.
      await page.locator('.statusbar-item[id*="shapelens"]').first().waitFor();
    }
    return workbench;
  }

  /** Brings the window back to the file that it was opened with: its text as on the disk, its first line in sight, no panel, no message. */
  async startOver() {
    const { keyboard } = this.page;
    await keyboard.press("Escape");
    if (await this.page.locator(".part.panel").isVisible()) {
      await keyboard.press("Control+j");
      await this.page.locator(".part.panel").waitFor({ state: "hidden" });
    }
    await this.focusEditor();
    if (await this.page.locator(".tab.active.dirty").count()) {
      await this.command("File: Revert File");
      await this.page.locator(".tab.active.dirty").waitFor({ state: "detached" });
      await this.focusEditor();
    }
    await keyboard.press("Control+Home");
  }

  /** Opens a notebook of the folder beside what is open, as a person does, and waits for its cells. */
  async openNotebook(name) {
    // VS Code knows its notebook editor, as its languages, only once extensions are registered; before that a notebook opens as JSON.
    const language = this.page.locator('[id="status.editor.mode"]');
    await eventually("Python in the status bar", async () => (await language.innerText()).includes("Python"), PATIENCE, () => language.innerText());
    await this.page.locator(".explorer-folders-view .monaco-list-row", { hasText: name }).first().dblclick();
    await this.page.locator(`.tab.active[data-resource-name="${name}"]`).waitFor();
    this.pane = ".notebookOverlay";
    await this.page.locator(`${this.pane} .view-line`).first().waitFor();
  }

  // --- text ---

  /** The lines on screen from top to bottom, inlay hints included, no-break spaces as spaces. */
  async lines() {
    return this.page.evaluate((pane) => {
      const editor = document.querySelector(pane) ?? document;
      const lines = [...editor.querySelectorAll(".view-lines .view-line")];
      lines.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top);
      return lines.map((line) => line.textContent.replaceAll("\u00a0", " "));
    }, this.pane);
  }

  /** Waits for a line that has `code` and, after it, `hint`, and hands it back. */
  async lineWith(code, hint = "", patience = PATIENCE) {
    const fits = (line) => line.includes(code) && line.indexOf(hint, line.indexOf(code) + code.length) >= 0;
    const seen = async () => [...(await this.lines()), ...(await this.toasts())].join("\n");
    return eventually(`a line with ${JSON.stringify(code)} and ${JSON.stringify(hint)}`, async () => (await this.lines()).find(fits), patience, seen);
  }

  /** The boxes (CSS pixels) of `text` in the first line on screen that has `code`; of all of `code` if no text is given. */
  async box(code, text = code) {
    const find = ([code, text, pane]) => {
      const editor = document.querySelector(pane) ?? document;
      for (const line of editor.querySelectorAll(".view-lines .view-line")) {
        const whole = line.textContent.replaceAll("\u00a0", " ");
        const from = whole.indexOf(code);
        const start = from < 0 ? -1 : whole.indexOf(text, from);
        if (start < 0) continue;
        const range = document.createRange();
        const walker = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
        let passed = 0;
        let began = false;
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
          const length = node.textContent.length;
          if (!began && start < passed + length) {
            range.setStart(node, start - passed);
            began = true;
          }
          if (began && start + text.length <= passed + length) {
            range.setEnd(node, start + text.length - passed);
            const { x, y, width, height } = range.getBoundingClientRect();
            return { x, y, width, height };
          }
          passed += length;
        }
      }
      return null;
    };
    return eventually(`${JSON.stringify(text)} on screen`, () => this.page.evaluate(find, [code, text, this.pane]), PATIENCE, async () => (await this.lines()).join("\n"));
  }

  /** The box of `text` once it stands still: a code lens that comes or goes moves the lines. */
  async still(code, text = code) {
    let box = await this.box(code, text);
    for (let before = null; before?.x !== box.x || before?.y !== box.y; box = await this.box(code, text)) {
      before = box;
      await sleep(300);
    }
    return box;
  }

  /** Clicks into the middle of `text` in the line that has `code`. */
  async click(code, text) {
    const box = await this.still(code, text);
    await this.page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
  }

  /** Replaces `old` in the line that has `code` by typing, as a person would: select it, type. */
  async retype(code, old, text) {
    await eventually(`${JSON.stringify(old)} is selected`, () => this.select(code, old), PATIENCE, async () => (await this.lines()).join("\n"));
    await this.page.keyboard.type(text);
  }

  /** Selects `text` in the line that has `code` by mouse and keyboard; whether that is what is selected, as lines and hints may move meanwhile. */
  async select(code, text) {
    const box = await this.still(code, text);
    await this.page.mouse.click(box.x + 0.5, box.y + box.height / 2);
    for (const _ of text) await this.page.keyboard.press("Shift+ArrowRight");
    if (!text) return true;
    await sleep(50);
    const now = await this.box(code, text);
    const selected = await this.page.locator(`${this.pane} .selected-text`).all();
    const boxes = await Promise.all(selected.map((each) => each.boundingBox()));
    return boxes.some((each) => each && Math.abs(each.y - now.y) < now.height / 2 && Math.abs(each.x - now.x) < 4 && Math.abs(each.width - now.width) < 8);
  }

  /** Takes the keyboard to the editor, from wherever it is. */
  async focusEditor() {
    await this.page.keyboard.press("Control+1");
    await this.page.locator(".editor-group-container.active .monaco-editor.focused").first().waitFor();
  }

  async save() {
    await this.page.keyboard.press("Control+s");
    await this.page.locator(".tab.active.dirty").waitFor({ state: "detached" });
  }

  // --- what the server adds ---

  /** Shows the hover at `text` and hands back its words. `expected` is what has to be in it before that. */
  async hover(code, text, expected = "") {
    const words = async () => {
      const box = await this.box(code, text);
      // VS Code shows a hover only after the mouse moved within the word, and begins anew where it moves on before the words are there.
      await this.page.mouse.move(box.x + box.width / 2 - 1, box.y + box.height / 2);
      await this.page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
      for (const deadline = Date.now() + AGAIN; Date.now() < deadline; ) {
        await sleep(250);
        for (const hover of await this.page.locator(".monaco-hover:visible").all()) {
          // One that has vanished meanwhile is looked for again, and not waited for.
          const shown = (await hover.innerText({ timeout: 1000 })).replaceAll("\u00a0", " ");
          if (shown.includes(expected) && !shown.includes("Loading...")) return shown;
        }
      }
      await this.page.mouse.move(5, 5); // The hover of another word would cover this one.
      return null;
    };
    const seen = async () => (await this.page.locator(".monaco-hover:visible").allInnerTexts()).join("\n---\n");
    return eventually(`a hover at ${JSON.stringify(text)} with ${JSON.stringify(expected)}`, words, PATIENCE, seen);
  }

  async leaveHover() {
    await this.page.mouse.move(5, 5);
    await eventually("no hover is left", async () => (await this.page.locator(".monaco-hover:visible").count()) === 0);
  }

  /** Waits until squiggles of this kind ("error", "warning", "info") are there, or gone for count 0, and hands back their boxes. */
  async squiggles(count, kind = "error", patience = PATIENCE) {
    const squiggles = this.page.locator(`${this.pane} .squiggly-${kind}`);
    await eventually(`${count} squiggles (${kind})`, async () => (await squiggles.count()) === count, patience, async () => `${await squiggles.count()} squiggles\n${(await this.lines()).join("\n")}`);
    return Promise.all((await squiggles.all()).map((squiggle) => squiggle.boundingBox()));
  }

  /** The titles of the code lenses on screen. */
  async lenses() {
    return (await this.page.locator(".codelens-decoration a").allTextContents()).map((text) => text.replaceAll("\u00a0", " "));
  }

  /** The lens whose title has `text`, once it is there. */
  async lens(text, patience = PATIENCE) {
    const lens = this.page.locator(".codelens-decoration a", { hasText: text }).first();
    await eventually(`a code lens with ${JSON.stringify(text)}`, () => lens.isVisible().then((is) => is || null), patience, async () => (await this.lenses()).join("\n"));
    return lens;
  }

  /** Clicks on the lens whose title has `text`, and on an entry of the menu that it opens. */
  async chooseFromLens(text, entry) {
    await (await this.lens(text)).click();
    const row = this.page.locator(".quick-input-list .monaco-list-row", { hasText: entry }).first();
    await row.waitFor();
    await row.click();
  }

  /**
   * Puts the cursor into `text` and opens the quick fix menu; hands back its rows' locator. `expected` is in the first row: a menu that was
   * opened before the fix was found does not get it, and is opened again.
   */
  async quickFixes(code, text, expected = "") {
    const rows = this.page.locator(".action-widget .monaco-list-row.action");
    const opens = async () => {
      // Each time anew, as a person would: a click can land beside the text while hints move it, and then there is nothing to fix there.
      await this.click(code, text);
      // A hover that comes up over the menu would close it.
      await this.leaveHover();
      await this.page.keyboard.press("Control+.");
      await rows.first().waitFor({ timeout: AGAIN });
      if ((await rows.first().innerText()).replaceAll(/\s+/g, " ").includes(expected)) return true;
      await this.page.keyboard.press("Escape");
      return false;
    };
    const cursor = async () => `cursor: ${await this.page.locator('[id="status.editor.selection"]').innerText()}\n${(await this.lines()).join("\n")}`;
    await eventually("the quick fix menu", opens, PATIENCE, cursor);
    return rows;
  }

  /** Opens the Problems panel and hands back its rows' texts once one has `expected`. */
  async problems(expected) {
    if (!(await this.page.locator(".markers-panel").isVisible())) await this.command("Problems: Focus on Problems View");
    const texts = async () => (await this.page.locator(".markers-panel .monaco-list-row").allInnerTexts()).map((text) => text.replaceAll(/\s+/g, " "));
    return eventually(`${JSON.stringify(expected)} among the problems`, async () => {
      const rows = await texts();
      return rows.some((row) => row.includes(expected)) ? rows : null;
    }, PATIENCE, async () => (await texts()).join("\n"));
  }

  // --- the rest of the window ---

  /** Runs a command by its title in the command palette. */
  async command(title) {
    const typed = async () => {
      const input = await this.inputBox("F1");
      await input.fill(`>${title}`, { timeout: AGAIN });
      return true;
    };
    await eventually("the command palette", typed);
    const row = this.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first();
    await row.waitFor();
    await row.click();
  }

  /** The input box of a command, as a locator, once it is there. key: what opens it, where it is not open yet. */
  async inputBox(key) {
    const input = this.page.locator(".quick-input-box:visible input").first();
    const opens = async () => {
      await this.page.keyboard.press(key);
      await input.waitFor({ timeout: AGAIN });
      return true;
    };
    if (key) await eventually(`the input box that ${key} opens`, opens);
    else await input.waitFor();
    return input;
  }

  /** ShapeLens's item of the status bar, once its label (what a screen reader says) has `text`. */
  async status(text, patience = PATIENCE) {
    const item = this.page.locator('.statusbar-item[id*="shapelens"] [aria-label]').first();
    const label = async () => ((await item.count()) ? await item.getAttribute("aria-label") : "no item");
    await eventually(`${JSON.stringify(text)} in the status bar`, async () => (await label()).includes(text), patience, label);
    return item;
  }

  /** Waits for a notification that has `text`, and hands back its locator. */
  async toast(text, patience = PATIENCE) {
    const toast = this.page.locator(".notification-toast", { hasText: text }).first();
    await toast.waitFor({ timeout: patience });
    return toast;
  }

  async toasts() {
    return this.page.locator(".notification-toast").allInnerTexts();
  }

  /** Grants trust to a restricted workspace through the window, as a person does. */
  async grantTrust() {
    await this.page.locator('.statusbar-item:has-text("Restricted Mode") a').first().click();
    await this.page.locator(".workspace-trust-editor .workspace-trust-buttons-row a", { hasText: "Trust" }).first().click();
    await this.page.locator('.statusbar-item:has-text("Restricted Mode")').waitFor({ state: "detached" });
    await this.page.keyboard.press("Control+w");
  }

  async screenshot(path, options = {}) {
    mkdirSync(dirname(path), { recursive: true });
    await this.page.screenshot({ path, ...options });
  }
}

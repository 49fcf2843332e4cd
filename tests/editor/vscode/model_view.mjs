// The view of a model as a whole, in VS Code's window.

/** Opens the view for the class at the cursor, and hands back its frame once it shows a model, or says why there is none. */
export async function showModel(vscode) {
  await vscode.command("ShapeLens: Show Model");
  return modelFrame(vscode);
}

/** The frame of the view, once it shows a model. */
export async function modelFrame(vscode, selector = "#tree, #blocks") {
  const frame = vscode.page.frameLocator('iframe.webview[src*="extensionId=shapelens"]').frameLocator("iframe");
  await frame.locator(selector).first().waitFor();
  return frame;
}

/** The row of the tree that has `text`. */
export const row = (frame, text) => frame.locator("#tree tbody tr[data-id]", { hasText: text });

/** The view's page itself, for what is to be evaluated in it. */
export async function modelPage(frame) {
  return (await frame.locator("body").elementHandle()).ownerFrame();
}

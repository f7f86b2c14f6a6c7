// Light or dark: as the reader's system has it, unless the button says otherwise.

const system = matchMedia("(prefers-color-scheme: dark)");

/** Whether the page is dark now. */
export function isDark() {
  const { theme } = document.documentElement.dataset;
  return theme ? theme === "dark" : system.matches;
}

/** Make it light or dark; undefined follows the system. */
export function setTheme(theme) {
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

/** Call when the system changes its mind. */
export const onSystem = (listener) => system.addEventListener("change", listener);

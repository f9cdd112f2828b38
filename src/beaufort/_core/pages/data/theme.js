// Light or dark: as the system has it, until the button says otherwise.
const root = document.documentElement, dark = matchMedia('(prefers-color-scheme: dark)');
const isDark = () => (root.dataset.theme ? root.dataset.theme === 'dark' : dark.matches);
const nameTheme = () => { if (byId('theme')) byId('theme').textContent = isDark() ? 'Light' : 'Dark'; };
if (byId('theme')) byId('theme').addEventListener('click', () => { root.dataset.theme = isDark() ? 'light' : 'dark'; nameTheme(); });
dark.addEventListener('change', nameTheme);
nameTheme();

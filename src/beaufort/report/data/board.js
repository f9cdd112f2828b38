root.classList.remove('plain');
